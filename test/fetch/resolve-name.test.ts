import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { guardedFetch } from '../../src/core/engine/fetch/guarded-fetch.js'
import { resolvePublicName, resolveWithSystem } from '../../src/core/engine/fetch/resolve-name.js'
import { noDial, rejection } from './loopback-server.js'

const sockets: Socket[] = []
afterEach(() => sockets.splice(0).forEach((socket) => socket.close()))

/** A name server on loopback; `answer` makes the reply to a question, or nothing. */
async function nameServer(answer: (question: Buffer) => Buffer | undefined) {
  const socket = createSocket('udp4')
  sockets.push(socket)
  const asked: Buffer[] = []
  socket.on('message', (question, from) => {
    asked.push(question)
    const reply = answer(question)
    if (reply) socket.send(reply, from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return { servers: [`127.0.0.1:${socket.address().port}`], asked }
}

const silent = () => undefined

/** The question with the flags of an answer, and with records if it asks for the given type. */
function reply(question: Buffer, code: number, records: Buffer[] = []): Buffer {
  const end = question.indexOf(0, 12) + 5
  const header = Buffer.from(question.subarray(0, 12))
  header.writeUInt16BE(0x8180 | code, 2)
  header.writeUInt16BE(records.length, 6)
  header.writeUInt32BE(0, 8)
  return Buffer.concat([header, question.subarray(12, end), ...records])
}

function typeOf(question: Buffer): number {
  return question.readUInt16BE(question.indexOf(0, 12) + 1)
}

function record(type: number, address: Buffer): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(60, 6)
  head.writeUInt16BE(address.length, 10)
  return Buffer.concat([head, address])
}

const live = () => new AbortController().signal

describe('the addresses of a public name', () => {
  it('are those of both families', async () => {
    const { servers } = await nameServer((question) => {
      const four = record(1, Buffer.from([198, 51, 100, 7]))
      const six = record(28, Buffer.from('20010db8000000000000000000000001', 'hex'))
      return reply(question, 0, [typeOf(question) === 28 ? six : four])
    })
    expect(await resolvePublicName('songs.example', live(), { servers })).toEqual([
      { address: '198.51.100.7', family: 4 },
      { address: '2001:db8::1', family: 6 },
    ])
  })

  it('are those of one family if the other has none', async () => {
    const { servers } = await nameServer((question) =>
      reply(question, 0, typeOf(question) === 1 ? [record(1, Buffer.from([198, 51, 100, 7]))] : []),
    )
    expect(await resolvePublicName('songs.example', live(), { servers })).toHaveLength(1)
  })

  it('do not exist for an unregistered name', async () => {
    const { servers } = await nameServer((question) => reply(question, 3))
    expect(await rejection(resolvePublicName('absent.example', live(), { servers }))).toMatchObject({
      code: 'ENOTFOUND',
    })
  })

  it('are given up when no name server answers', async () => {
    const { servers, asked } = await nameServer(silent)
    const options = { servers, timeoutMs: 50, tries: 2 }
    expect(await rejection(resolvePublicName('dead.example', live(), options))).toMatchObject({ code: 'ETIMEOUT' })
    expect(asked.length).toBeGreaterThanOrEqual(2)
  })

  it('are given up at once when the signal fires', async () => {
    const { servers } = await nameServer(silent)
    const controller = new AbortController()
    const reason = new Error('the job was deleted')
    const resolving = rejection(resolvePublicName('dead.example', controller.signal, { servers, timeoutMs: 600_000 }))
    controller.abort(reason)
    expect(await resolving).toBe(reason)
  })
})

it('forty names whose servers never answer hold up neither the system resolver nor another name', async () => {
  const dead = await nameServer(silent)
  const living = await nameServer((question) => reply(question, 0, [record(1, Buffer.from([198, 51, 100, 7]))]))
  const controller = new AbortController()
  let ended = 0
  const stuck = Array.from({ length: 40 }, (_, index) =>
    rejection(
      resolvePublicName(`dead-${index}.example`, controller.signal, { servers: dead.servers, timeoutMs: 600_000 }),
    ).finally(() => ended++),
  )
  expect(await resolveWithSystem('localhost')).not.toEqual([])
  expect(await resolvePublicName('songs.example', live(), { servers: living.servers })).not.toEqual([])
  expect(ended).toBe(0)
  controller.abort(new Error('enough'))
  await Promise.all(stuck)
})

it('a name server that does not answer is a retryable failure; a name that does not exist is not', async () => {
  const { dial } = noDial()
  const failing = (code: string) => async () => {
    throw Object.assign(new Error(`query${code}`), { code })
  }
  const fetched = (code: string) =>
    rejection(guardedFetch('https://songs.example/a.wav', { maxBytes: 1, policy: { resolver: failing(code) }, dial }))
  expect(await fetched('ETIMEOUT')).toMatchObject({ reason: 'download_failed', retryable: true })
  expect(await fetched('ENOTFOUND')).toMatchObject({ reason: 'download_failed', retryable: false })
})
