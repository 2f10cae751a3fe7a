"""Estimates as tables, JSON, Markdown and a page with plots."""
