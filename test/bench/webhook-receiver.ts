/**
 * A webhook server in a separate process. It accepts everything at once, and returns the count on request.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

let taken = 0
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    taken += 1
    response.writeHead(204).end()
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('message', () => process.send?.(taken))
process.on('disconnect', () => process.exit())
