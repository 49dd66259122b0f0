"""Stands for an issuer of tokens: `python tokens.py TENANT USER` prints one, for five minutes."""

import json
import sys
import time
from pathlib import Path

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

private = Path("issuer.json")
if not private.exists():
    made = ECKey.generate_key("P-256", auto_kid=True)
    private.write_text(json.dumps(made.as_dict(private=True)))
    # What everybody may know: tokens are verified with it.
    Path("jwks.json").write_text(json.dumps(KeySet([made]).as_dict(private=False)))
key = ECKey.import_key(json.loads(private.read_text()))

_, tenant, user = sys.argv
claims = {
    "iss": "https://id.example.com",
    "aud": "orders",
    "sub": user,
    "org_id": tenant,
    "exp": int(time.time()) + 300,
    "jti": str(time.time_ns()),  # no two tokens are the same
}
print(jwt.encode({"alg": "ES256", "kid": key.kid}, claims, key))
