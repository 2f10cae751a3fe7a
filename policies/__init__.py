"""Rules of the policy pack: what no preview and no deployment may do, hand-made resources included."""
