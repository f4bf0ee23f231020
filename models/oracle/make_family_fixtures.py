#!/usr/bin/env python3
"""Makes the fixtures of the families beside plain Llama: tiny random checkpoints of each and what transformers makes of
them.

    python3 models/oracle/make_family_fixtures.py                  # all cases
    python3 models/oracle/make_family_fixtures.py gemma2-hub       # these only
    python3 models/oracle/make_family_fixtures.py --check          # rewrites nothing: do the committed ones still hold?

Works as make_fixtures.py does; families.py and mixtures.py have the cases. Also writes their table in README.md.
"""

import transformers

import families
import make_fixtures
import mixtures

BYTES_LIMIT = 8_000_000

if __name__ == "__main__":
    make_fixtures.main(families.CASES + mixtures.CASES, __doc__, BYTES_LIMIT)
