/** Classifies connection errors by Node's and http-client.ts's names. Pure. The adapters interpret the classes. */
import { NO_CONNECTION } from '../../db/process/http-client.ts'

/** With one of these an attempt ended before any byte of the request was sent. Repeating it is safe. */
export const NOT_CONNECTED: ReadonlySet<string> = new Set([
  NO_CONNECTION,
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL'],
  ...['CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN'],
  ...['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'ERR_TLS_CERT_ALTNAME_INVALID'],
  // Requests that Node doesn't start: a token with a line break, an invalid address.
  ...['ERR_INVALID_CHAR', 'ERR_INVALID_URL'],
])
