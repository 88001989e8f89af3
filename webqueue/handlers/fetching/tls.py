"""The TLS settings of a site's connections."""

from __future__ import annotations

import functools
import ssl

import httpx2

# Python names this flag from 3.12 on; its value is OpenSSL's SSL_OP_LEGACY_SERVER_CONNECT.
_LEGACY_SERVER_CONNECT = 0x4


@functools.cache
def tls_context(*, verify: bool, legacy: bool) -> ssl.SSLContext:
    """The context for a site's `verify_tls` and `legacy_tls`; shared by all fetchers, since it takes long to load.

    The environment is not asked for certificates (`trust_env=False`, DESIGN §9): the same crawl gives the same result
    under every account.

    `legacy` lets in what OpenSSL 3 refuses and old servers of authorities still speak: TLS 1.0 and 1.1, renegotiation
    without RFC 5746, small keys and SHA-1. It takes security level 0, as at level 1 OpenSSL 3 refuses TLS 1.0
    altogether. It weakens the connections of the one site that sets it, and the certificate is checked all the same.
    """
    context = httpx2.create_ssl_context(verify=verify, trust_env=False)
    if legacy:
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.options |= _LEGACY_SERVER_CONNECT
    return context
