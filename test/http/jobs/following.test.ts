import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { listener } from '../../../src/http/mounts/node.js'
import { type JobJson, pollJob, type Service, serviceOfTest, startService } from '../harness.js'

/** Timeout for a busy machine: the default is one second. */
const patient = { timeout: 15_000 }

let service: Service
beforeEach(async () => {
  service = await startService()
})
afterEach(() => {
  vi.useRealTimers()
  return service.close()
})

async function createHeld(headers: Record<string, string> = {}): Promise<{ answer: Response; body: JobJson }> {
  const answer = await service.submit({}, { headers })
  return { answer, body: (await answer.json()) as JobJson }
}

describe('Prefer: wait', () => {
  test('on create answers with the finished job', async () => {
    setTimeout(() => service.release(), 50)
    const { answer, body } = await createHeld({ prefer: 'wait=30' })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('preference-applied')).toBe('wait=30')
    expect(body).toMatchObject({ status: 'SUCCEEDED', result: { report: expect.stringMatching(/report\.json\?/) } })
  })

  test('on get answers at the end of the job by its event, not by looking again', async () => {
    const listeners = countListeners(service)
    const { body } = await createHeld()
    await pollJob(service, body.id, (job) => job.status === 'STARTED')
    // Without events, only a poll every second is left; with a stopped clock, there is no poll.
    vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'Date', 'performance'] })
    const waiting = service.api(`/job/${body.id}`, { headers: { prefer: 'respond-async, wait=30' } })
    await expect.poll(() => listeners.count, patient).toBeGreaterThan(0)
    service.release()
    expect(await (await waiting).json()).toMatchObject({ status: 'SUCCEEDED' })
  })

  test('answers 200 with the current job when the time is over', async () => {
    const { answer, body } = await createHeld({ prefer: 'wait=1' })
    expect([answer.status, answer.headers.get('preference-applied')]).toEqual([200, 'wait=1'])
    expect(['QUEUED', 'STARTED']).toContain(body.status)
  })

  test('is limited to 60 seconds, and invalid values are ignored', async () => {
    service.release()
    expect((await createHeld({ prefer: 'wait=86400' })).answer.headers.get('preference-applied')).toBe('wait=60')
    const { answer, body } = await createHeld({ prefer: 'wait=soon' })
    expect([answer.headers.get('preference-applied'), Object.keys(body)]).toEqual([null, ['id']])
  })

  test('answers 404 when the job is deleted meanwhile', async () => {
    const listeners = countListeners(service)
    const { body } = await createHeld()
    const waiting = service.api(`/job/${body.id}`, { headers: { prefer: 'wait=30' } })
    await expect.poll(() => listeners.count, patient).toBeGreaterThan(0)
    await service.api(`/job/${body.id}`, { method: 'DELETE' })
    expect((await waiting).status).toBe(404)
  })
})

describe('an engine that closes', () => {
  test('ends event streams and waiting requests properly', async () => {
    const { body } = await createHeld()
    await pollJob(service, body.id, (job) => job.status === 'STARTED')
    const listeners = countListeners(service)
    const waiting = service.api(`/job/${body.id}`, { headers: { prefer: 'wait=60' } })
    await expect.poll(() => listeners.count, patient).toBeGreaterThan(0)
    const streams = await Promise.all([service.api('/job/events'), service.api(`/job/${body.id}/events`)])
    const closed = [service.server.close({ timeoutMs: 30_000 }), service.engine.close({ timeoutMs: 30_000 })]
    // These fail if a connection is cut off.
    expect(await streams[0].text()).toContain('event: ready')
    expect(await streams[1].text()).toContain('"status":"STARTED"')
    const answer = await waiting
    expect([answer.status, ((await answer.json()) as JobJson).status]).toEqual([200, 'STARTED'])
    service.release()
    await Promise.all(closed)
  })
})

interface Event {
  event: string | undefined
  id: string | undefined
  data: JobJson
}

async function readEvents(answer: Response, onEvent: (event: Event) => void = () => {}): Promise<Event[]> {
  const events: Event[] = []
  let text = ''
  for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString()
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const fields = Object.fromEntries(
        frame.split('\n').map((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]),
      )
      if (fields.data === undefined) continue
      events.push({ event: fields.event, id: fields.id, data: JSON.parse(fields.data) })
      onEvent(events[events.length - 1]!)
    }
  }
  return events
}

describe('server-sent events', () => {
  test('show the job at once, at each change and at its end, and then close', async () => {
    const { body } = await createHeld()
    const answer = await service.api(`/job/${body.id}/events`)
    expect(answer.headers.get('content-type')).toContain('text/event-stream')
    const events = await readEvents(answer, ({ data }) => {
      if (data.progress > 0 && data.status === 'STARTED') service.release()
    })
    expect(events.every(({ event, data }) => event === 'job' && data.id === body.id)).toBe(true)
    const last = events[events.length - 1]
    expect(last).toMatchObject({ id: 'end', data: { status: 'SUCCEEDED', progress: 1 } })
    expect(events.slice(0, -1).map(({ data }) => data.status)).toContain('STARTED')
    const progress = events.map(({ data }) => data.progress)
    expect([...progress].sort((a, b) => a - b)).toEqual(progress)
  })

  test('begin with an event: clients such as httpx-sse take a lone `retry` for a message without data', async () => {
    const { body } = await createHeld()
    service.release()
    const streams = [await service.api(`/job/${body.id}/events`), await service.api('/job/events')]
    for (const [index, first] of ['job', 'ready'].entries()) {
      const reader = streams[index]!.body!.pipeThrough(new TextDecoderStream()).getReader()
      const { value } = await reader.read()
      await reader.cancel()
      expect(value).toMatch(new RegExp(`^retry: 2000\\n(id: end\\n)?event: ${first}\\ndata: \\{`))
    }
  })

  test('end with `deleted` when the job goes away', async () => {
    const { body } = await createHeld()
    const answer = await service.api(`/job/${body.id}/events`)
    let deleted: Promise<Response> | undefined
    const events = await readEvents(answer, ({ data }) => {
      if (data.status === 'STARTED') deleted ??= service.api(`/job/${body.id}`, { method: 'DELETE' })
    })
    expect((await deleted)?.status).toBe(200)
    expect(events[events.length - 1]).toMatchObject({ event: 'deleted', id: 'end', data: { id: body.id } })
  })

  test('are over for a client that reconnects after the end', async () => {
    service.release()
    const { body } = await createHeld({ prefer: 'wait=30' })
    expect((await service.api(`/job/${body.id}/events`, { headers: { 'last-event-id': 'end' } })).status).toBe(204)
  })

  test('leave no listener on the engine when the client goes away', async () => {
    const listeners = countListeners(service)
    const { body } = await createHeld()
    const abort = new AbortController()
    const answer = await service.api(`/job/${body.id}/events`, { signal: abort.signal })
    const reading = readEvents(answer, () => abort.abort())
    await expect(reading).rejects.toMatchObject({ name: 'AbortError' })
    await expect.poll(() => listeners.count, patient).toBe(0)
    expect(listeners.most).toBeGreaterThan(0)
  })

  test("of another application's job do not exist", async () => {
    const { body } = await createHeld()
    const { key } = await service.addApplication('Stranger')
    expect((await service.api(`/job/${body.id}/events`, { key })).status).toBe(404)
  })
})

test('an application may have so many waiting requests; then Prefer is ignored, and streams are refused', async () => {
  const few = await serviceOfTest({ http: { limits: { waitingRequests: 1 } } })
  const id = await few.created()
  const abort = new AbortController()
  const stream = await few.api(`/job/${id}/events`, { signal: abort.signal })
  await stream.body?.getReader().read()
  expect((await few.api(`/job/${id}/events`)).status).toBe(429)
  const answer = await few.submit({}, { headers: { prefer: 'wait=30' } })
  expect([answer.status, answer.headers.get('preference-applied')]).toEqual([200, null])
  abort.abort()
  await expect.poll(async () => (await few.api(`/job/${id}/events`, { method: 'HEAD' })).status, patient).toBe(200)
})

test('streams that wait behind another of their connection end with it', async () => {
  const few = await serviceOfTest({ http: { limits: { waitingRequests: 2 } } })
  const id = await few.created()
  const status = async () => (await few.api(`/job/${id}/events`, { method: 'HEAD' })).status
  const { hostname, port, pathname } = new URL(`${few.base}/job/${id}/events`)
  const socket = connect(Number(port), hostname)
  const request = `GET ${pathname} HTTP/1.1\r\nHost: x\r\nAuthorization: ${few.app.key}\r\n\r\n`
  socket.write(request.repeat(2))
  await expect.poll(status, patient).toBe(429)
  socket.destroy()
  await expect.poll(status, patient).toBe(200)
  const abort = new AbortController()
  const stream = await few.api(`/job/${id}/events`, { signal: abort.signal })
  await stream.body?.getReader().read()
  await expect.poll(status, patient).toBe(200)
  abort.abort()
})

test('they do not begin if the host passes them on after their connection has ended', async () => {
  const few = await serviceOfTest({ http: { limits: { waitingRequests: 2 } } })
  const id = await few.created()
  const passOn = listener(few.handler)
  const waiting: (() => unknown)[] = []
  const host = createServer((request, response) => void waiting.push(() => passOn(request, response)))
  onTestFinished(() => void host.close())
  await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve))
  const socket = connect((host.address() as AddressInfo).port, '127.0.0.1')
  const { pathname } = new URL(`${few.base}/job/${id}/events`)
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: x\r\nAuthorization: ${few.app.key}\r\n\r\n`.repeat(3))
  await expect.poll(() => waiting.length, patient).toBe(3)
  socket.destroy()
  await expect.poll(() => new Promise((resolve) => host.getConnections((_, open) => resolve(open))), patient).toBe(0)
  const passed = waiting.map((pass) => pass())
  await Promise.all(passed)
  expect((await few.api(`/job/${id}/events`, { method: 'HEAD' })).status).toBe(200)
})

describe('cancel', () => {
  test('ends a running job as FAILED with CANCELED', async () => {
    const { body } = await createHeld()
    await pollJob(service, body.id, (job) => job.status === 'STARTED')
    expect((await service.api(`/job/${body.id}/cancel`, { method: 'POST' })).status).toBe(200)
    expect(await pollJob(service, body.id)).toMatchObject({ status: 'FAILED', error: { code: 'CANCELED' } })
  })

  test('leaves an ended job as it is', async () => {
    service.release()
    const { body } = await createHeld({ prefer: 'wait=30' })
    const answer = await service.api(`/job/${body.id}/cancel`, { method: 'POST' })
    expect([answer.status, ((await answer.json()) as JobJson).status]).toEqual([200, 'SUCCEEDED'])
  })
})

function countListeners({ engine }: Service): { count: number; most: number } {
  const counter = { count: 0, most: 0 }
  const [on, off] = [engine.on.bind(engine), engine.off.bind(engine)]
  engine.on = (...given: Parameters<typeof on>) => {
    counter.most = Math.max(counter.most, ++counter.count)
    return on(...given)
  }
  engine.off = (...given: Parameters<typeof off>) => {
    counter.count--
    return off(...given)
  }
  return counter
}
