// Loaded before anything of ours, in plain JavaScript: refuses a Node that is too old, then has Node keep what it makes
// of our modules (types stripped, code compiled), which the next start then reads. The directory belongs to the
// installation, so that nobody else can plant code in it; where it cannot be written, nothing is kept. Node's own
// settings go before: NODE_COMPILE_CACHE names another directory, NODE_DISABLE_COMPILE_CACHE=1 keeps nothing. Ends the
// first process of a container by the signals that end any other.
import './node-version.js'
// Its members by name would not link in a Node that lacks one of them, before the line above has spoken.
import module from 'node:module'
import { fileURLToPath } from 'node:url'

module.enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/heliograph', import.meta.url)))

// An import of node:http reads all that it exports, and so loads WebSocket with all of fetch and HTTP/2 (14 MB).
const http = process.getBuiltinModule('node:http')
for (const name of ['WebSocket', 'CloseEvent', 'MessageEvent']) Reflect.deleteProperty(http, name)

// To process 1 the kernel gives no default: until there is a listener that knows what to finish, these end it here.
if (process.pid === 1)
  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ]) {
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(code)
    })
  }
