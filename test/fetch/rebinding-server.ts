import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

/**
 * A real name server on loopback that answers the first question for an A record with the first address, the second
 * with the second, and so on, repeating the last one forever, with a time to live of 0.
 */
export async function rebindingNameServer(addresses: string[]) {
  const questions: string[] = []
  const server = createSocket('udp4')
  onTestFinished(() => void server.close())
  server.on('message', (query, from) => {
    const { name, end } = questionOf(query)
    questions.push(name)
    const address = addresses[Math.min(questions.length, addresses.length) - 1]
    server.send(answerTo(query, end, address!), from.port, from.address)
  })
  server.bind(0, '127.0.0.1')
  await once(server, 'listening')
  const resolver = new Resolver()
  resolver.setServers([`127.0.0.1:${server.address().port}`])
  return {
    questions,
    resolver: async (host: string) => (await resolver.resolve4(host)).map((address) => ({ address, family: 4 })),
  }
}

function questionOf(query: Buffer): { name: string; end: number } {
  const labels: string[] = []
  let at = 12
  while (query[at] !== 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + query[at]!))
    at += query[at]! + 1
  }
  return { name: labels.join('.'), end: at + 5 }
}

/** RFC 1035, section 4.1: the header, the unchanged question, and one A record that refers to its name. */
function answerTo(query: Buffer, end: number, address: string): Buffer {
  const header = Buffer.from([query[0]!, query[1]!, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0])
  const record = Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)])
  return Buffer.concat([header, query.subarray(12, end), record])
}
