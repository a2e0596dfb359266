/** A process that reports how large its heap is after a collection, for `node --expose-gc --import`. */
process.on('message', (question) => {
  if (question !== 'heap') return
  globalThis.gc?.()
  process.send?.(process.memoryUsage().heapUsed)
})
// The parent's questions keep no process alive that has ended its work.
process.channel?.unref()
