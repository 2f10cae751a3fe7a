"""Post the report of a preview as a comment, or edit the one that is there: `comment.py FILE` in a runner of CI.

GitHub: GITHUB_API_URL, GITHUB_REPOSITORY, PULL_REQUEST, GITHUB_TOKEN. GitLab: CI_API_V4_URL, CI_PROJECT_ID,
CI_MERGE_REQUEST_IID, GITLAB_COMMENT_TOKEN (a project access token with the scope `api`). Without a pull or merge
request nothing is posted.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TIMEOUT_S = 30
_PAGE = 100


@dataclass(frozen=True)
class Site:
    """Where comments go.

    Attributes:
        comments: address of the comments of the request.
        one: address of one comment, without its id.
        headers: with the token.
        verb: method that edits.
    """

    comments: str
    one: str
    headers: Mapping[str, str]
    verb: str


def site(environment: Mapping[str, str]) -> Site | None:
    """The site that a runner's variables name, None where they name no pull or merge request."""
    if number := environment.get("PULL_REQUEST"):
        base = f"{environment['GITHUB_API_URL']}/repos/{environment['GITHUB_REPOSITORY']}/issues"
        headers = {"Authorization": f"Bearer {environment['GITHUB_TOKEN']}", "Accept": "application/vnd.github+json"}
        return Site(f"{base}/{number}/comments", f"{base}/comments", headers, "PATCH")
    if number := environment.get("CI_MERGE_REQUEST_IID"):
        project = f"{environment['CI_API_V4_URL']}/projects/{environment['CI_PROJECT_ID']}"
        notes = f"{project}/merge_requests/{number}/notes"
        return Site(notes, notes, {"PRIVATE-TOKEN": environment["GITLAB_COMMENT_TOKEN"]}, "PUT")
    return None


def post(where: Site, text: str) -> str:
    """Edit the comment that begins with the same line, or write a new one; says which."""
    marker = text.splitlines()[0]
    page = 1
    while found := _call(where, "GET", f"{where.comments}?per_page={_PAGE}&page={page}"):
        for comment in found:
            if str(comment.get("body") or "").startswith(marker):
                _call(where, where.verb, f"{where.one}/{comment['id']}", {"body": text})
                return "edited"
        if len(found) < _PAGE:
            break
        page += 1
    _call(where, "POST", where.comments, {"body": text})
    return "written"


def _call(where: Site, verb: str, address: str, body: Mapping[str, str] | None = None) -> Any:
    request = urllib.request.Request(  # noqa: S310  the runner's own API
        address,
        method=verb,
        data=json.dumps(body).encode() if body else None,
        headers={**where.headers, "Content-Type": "application/json", "User-Agent": "hpc-preview"},
    )
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310  the runner's own API
        return json.loads(answer.read() or b"null")


def main() -> int:
    """Exit code 0: posted, or nothing to post to; 2: the site refused."""
    where = site(os.environ)
    file = Path(sys.argv[1])
    if where is None or not file.is_file():
        sys.stderr.write("no pull or merge request, or no report: nothing is posted\n")
        return 0
    try:
        sys.stderr.write(f"comment {post(where, file.read_text(encoding='utf-8'))}\n")
    except urllib.error.URLError as error:
        sys.stderr.write(f"the comment cannot be posted: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
