/** Faults of connections, as Node and outgoing.ts name them. Pure; what a fault means is its adapter's to say. */
import { NO_CONNECTION } from '../../db/process/http-client.ts'

/** With one of these an attempt ended before a byte of the request had left: repeating it is safe. */
export const NOT_CONNECTED: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  NO_CONNECTION,
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  // What Node does not even begin: a token with a line break, an address that is none.
  'ERR_INVALID_CHAR',
  'ERR_INVALID_URL',
])
