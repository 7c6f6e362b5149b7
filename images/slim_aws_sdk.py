"""Cut the AWS SDK bundle (690 MB) down to the services that S3A uses (about 20 MB).

usage: slim_aws_sdk.py BUNDLE.jar SLIM.jar

The bundle is one jar of some 400 services over a shared core with relocated dependencies. S3A needs
S3, STS, KMS and single sign-on. Keeping the bundle's own class files, rather than picking the SDK's
separate modules, keeps their relocated Netty apart from Spark's.
"""

import sys
import zipfile

_SERVICES = "software/amazon/awssdk/services/"
_KEPT = frozenset({"kms", "s3", "signin", "sso", "ssooidc", "sts"})
_DATE = (1980, 1, 1, 0, 0, 0)


def is_kept(name: str) -> bool:
    """Whether the class file or resource belongs to the core or to a service that S3A uses."""
    return not name.startswith(_SERVICES) or name[len(_SERVICES) :].split("/", 1)[0] in _KEPT


def slim(source: str, target: str) -> None:
    """Copy what is kept, with constant dates: the same bundle gives the same jar."""
    with zipfile.ZipFile(source) as bundle, zipfile.ZipFile(target, "w") as jar:
        for entry in bundle.infolist():
            if not entry.is_dir() and is_kept(entry.filename):
                copied = zipfile.ZipInfo(entry.filename, _DATE)
                copied.compress_type = zipfile.ZIP_DEFLATED
                jar.writestr(copied, bundle.read(entry))


if __name__ == "__main__":
    slim(sys.argv[1], sys.argv[2])
