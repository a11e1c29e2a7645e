"""Makes a bucket on the server of AWS_ENDPOINT_URL (signature version 4, standard library only). usage: make_bucket.py NAME"""

import datetime
import hashlib
import hmac
import os
import sys
import urllib.parse
import urllib.request

endpoint, bucket = os.environ["AWS_ENDPOINT_URL"], sys.argv[1]
host = urllib.parse.urlparse(endpoint).netloc
region = os.environ.get("AWS_REGION", "us-east-1")
now = datetime.datetime.now(datetime.timezone.utc)
stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
empty = hashlib.sha256(b"").hexdigest()
headers = f"host:{host}\nx-amz-content-sha256:{empty}\nx-amz-date:{stamp}\n"
signed = "host;x-amz-content-sha256;x-amz-date"
canonical = f"PUT\n/{bucket}\n\n{headers}\n{signed}\n{empty}"
scope = f"{day}/{region}/s3/aws4_request"
to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
key = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
for part in (day, region, "s3", "aws4_request"):
    key = hmac.new(key, part.encode(), hashlib.sha256).digest()
signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
request = urllib.request.Request(f"{endpoint}/{bucket}", method="PUT")
request.add_header("x-amz-date", stamp)
request.add_header("x-amz-content-sha256", empty)
credential = f"{os.environ['AWS_ACCESS_KEY_ID']}/{scope}"
request.add_header("Authorization", f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={signed}, Signature={signature}")
urllib.request.urlopen(request, timeout=20)
