"""Makes a bucket on the server of AWS_ENDPOINT_URL, and waits until it takes an object (signature version 4, standard library
only): a server that has just started answers before it can store anything. usage: make_bucket.py NAME"""

import datetime
import hashlib
import hmac
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

endpoint, bucket = os.environ["AWS_ENDPOINT_URL"], sys.argv[1]
host = urllib.parse.urlparse(endpoint).netloc
region = os.environ.get("AWS_REGION", "us-east-1")


def call(method, path, body=b""):
    now = datetime.datetime.now(datetime.timezone.utc)
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    digest = hashlib.sha256(body).hexdigest()
    headers = f"host:{host}\nx-amz-content-sha256:{digest}\nx-amz-date:{stamp}\n"
    signed = "host;x-amz-content-sha256;x-amz-date"
    canonical = f"{method}\n{path}\n\n{headers}\n{signed}\n{digest}"
    scope = f"{day}/{region}/s3/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    credential = f"{os.environ['AWS_ACCESS_KEY_ID']}/{scope}"
    request = urllib.request.Request(f"{endpoint}{path}", data=body or None, method=method)
    request.add_header("x-amz-date", stamp)
    request.add_header("x-amz-content-sha256", digest)
    request.add_header(
        "Authorization", f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={signed}, Signature={signature}"
    )
    urllib.request.urlopen(request, timeout=20)


call("PUT", f"/{bucket}")
for left in range(60, -1, -1):
    try:
        call("PUT", f"/{bucket}/ready", b"yes")
        call("DELETE", f"/{bucket}/ready")
        break
    except urllib.error.URLError as e:
        if left == 0:
            sys.exit(f"make_bucket: {endpoint} takes no object: {e}")
        time.sleep(0.5)
