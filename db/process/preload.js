// Runs before all other code, in plain JavaScript. Rejects a Node that is too old, then caches the compiled
// modules for the next start. The cache is in the installation's directory, so no other user can plant code
// in it. If that isn't writable, nothing is cached. NODE_COMPILE_CACHE sets another directory, and
// NODE_DISABLE_COMPILE_CACHE=1 disables the cache. Also lets signals end the first process of a container.
import './node-version.js'
// Named imports would fail to link in an old Node, before the line above can print its message.
import module from 'node:module'
import { fileURLToPath } from 'node:url'

module.enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/heliograph', import.meta.url)))

// slonik checks intervals and URLs with zod. Version 4 loads itself in 50 languages (5 MB, 0.1 s), version 3 doesn't.
module.registerHooks({
  resolve: (specifier, context, next) => next(specifier === 'zod' ? 'zod/v3' : specifier, context),
})

// Importing node:http reads all its exports, which would load WebSocket with fetch and HTTP/2 (14 MB).
const http = process.getBuiltinModule('node:http')
for (const name of ['WebSocket', 'CloseEvent', 'MessageEvent']) Reflect.deleteProperty(http, name)

// The kernel has no default signal handlers for process 1. These exit until another listener shuts down
// properly.
if (process.pid === 1)
  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ]) {
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(code)
    })
  }
