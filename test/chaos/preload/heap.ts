/**
 * Reports the size of the process's heap after a collection to its parent, for `node --expose-gc --import`.
 */
process.on('message', (question) => {
  if (question !== 'heap') return
  globalThis.gc?.()
  process.send?.(process.memoryUsage().heapUsed)
})
// Listening for requests must not keep a finished process running.
process.channel?.unref()
