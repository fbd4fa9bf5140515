import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { pollJob, type Service, startService } from '../harness.js'
import { chunkedPut, rawRequest } from '../mounts/raw-request.js'

const stems = 'service/stems-vocals-accompaniment'
const maxFileBytes = 64 * 1024
const song = Buffer.from(Array.from({ length: 20_000 }, (_, index) => index % 251))

let service: Service
beforeAll(async () => {
  service = await startService({ engine: { limits: { maxFileBytes } } })
})
afterAll(() => service.close())

interface Ticket {
  uploadUrl: string
  downloadUrl: string
}

async function newTicket(): Promise<Ticket> {
  return (await (await service.api('/upload')).json()) as Ticket
}

/** The stored content as text, for a quick comparison. */
async function stored(ticket: Ticket): Promise<string | undefined> {
  const answer = await fetch(ticket.downloadUrl)
  return answer.status === 200 ? text(Buffer.from(await answer.arrayBuffer())) : undefined
}

function text(bytes: Buffer): string {
  return bytes.toString('latin1')
}

async function createJob(
  inputUrl: string,
  idempotencyKey?: string,
): Promise<{ status: number; body: { id?: string; code?: string; reason?: string; message?: string } }> {
  const headers: Record<string, string> = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
  const answer = await service.submit({ workflow: stems, params: { inputUrl } }, { headers })
  return { status: answer.status, body: (await answer.json()) as Record<string, string> }
}

function form(
  boundary: string,
  parts: string[],
  file: Uint8Array = song,
  disposition = 'form-data; name="filedata"; filename="my song.mp3"',
): Buffer {
  return Buffer.concat([
    ...parts.map((part) => Buffer.from(`--${boundary}\r\n${part}\r\n`)),
    Buffer.from(`--${boundary}\r\nContent-Disposition: ${disposition}\r\nContent-Type: audio/mpeg\r\n\r\n`),
    file,
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ])
}

describe('a file arrives byte for byte when it is sent', () => {
  test('as the plain body with a length', async () => {
    const ticket = await newTicket()
    const answer = await fetch(ticket.uploadUrl, { method: 'PUT', body: song })
    expect([answer.status, await answer.json()]).toEqual([200, { bytes: song.length }])
    expect(await stored(ticket)).toBe(text(song))
  })

  test('chunked, without length and type', async () => {
    const ticket = await newTicket()
    const answer = await rawRequest(
      ticket.uploadUrl,
      chunkedPut(ticket.uploadUrl, [song.subarray(0, 1), song.subarray(1, 9_000), song.subarray(9_000)]),
    )
    expect(answer.status).toBe(200)
    expect(await stored(ticket)).toBe(text(song))
  })

  test('as a form', async () => {
    const ticket = await newTicket()
    const body = new FormData()
    body.set('note', 'before the file')
    body.set('filedata', new Blob([song]), 'song.wav')
    expect((await fetch(ticket.uploadUrl, { method: 'PUT', body })).status).toBe(200)
    expect(await stored(ticket)).toBe(text(song))
  })

  test('as a form in chunks that cut every boundary, announced as nothing', async () => {
    const ticket = await newTicket()
    const small = song.subarray(0, 300)
    const bytes = form('----cut-here', ['Content-Disposition: form-data; name="note"\r\n\r\nhello'], small)
    const answer = await rawRequest(
      ticket.uploadUrl,
      chunkedPut(
        ticket.uploadUrl,
        Array.from(bytes, (byte) => Uint8Array.of(byte)),
      ),
    )
    expect(answer.status).toBe(200)
    expect(await stored(ticket)).toBe(text(small))
  })

  test('as a form whose field has no file name, with an unquoted field name', async () => {
    const ticket = await newTicket()
    const answer = await fetch(ticket.uploadUrl, {
      method: 'PUT',
      body: form('xyz', [], song, 'form-data; name=filedata'),
      headers: { 'content-type': 'multipart/form-data; boundary=xyz' },
    })
    expect(answer.status).toBe(200)
    expect(await stored(ticket)).toBe(text(song))
  })

  test('as the plain body under the header multipart/form-data, with and without a boundary', async () => {
    for (const type of ['multipart/form-data', 'multipart/form-data; boundary=xyz']) {
      const ticket = await newTicket()
      expect(
        (await fetch(ticket.uploadUrl, { method: 'PUT', body: song, headers: { 'content-type': type } })).status,
      ).toBe(200)
      expect(await stored(ticket)).toBe(text(song))
    }
  })

  test.each([
    ['dashes', '--not a form\r\nbut a text\r\n'],
    ['a boundary without headers', '--boundary\r\n\r\nRIFF'],
    ['nothing at all', ''],
    ['one byte', '-'],
  ])('with a plain body that begins with %s', async (_what, sent) => {
    const ticket = await newTicket()
    expect(
      (
        await fetch(ticket.uploadUrl, {
          method: 'PUT',
          body: sent,
          headers: { 'content-type': 'application/octet-stream' },
        })
      ).status,
    ).toBe(200)
    expect(await stored(ticket)).toBe(sent)
  })

  test('from a client that never sends less than one byte at a time and ends with an epilogue', async () => {
    const ticket = await newTicket()
    const bytes = Buffer.concat([form('b', []), Buffer.from('epilogue that means nothing')])
    expect((await fetch(ticket.uploadUrl, { method: 'PUT', body: bytes })).status).toBe(200)
    expect(await stored(ticket)).toBe(text(song))
  })
})

describe('an upload is refused', () => {
  test('when it is larger than the limit, with 413 after the client has sent it; the job says why', async () => {
    const ticket = await newTicket()
    const block = Buffer.alloc(64 * 1024)
    const answer = await rawRequest(
      ticket.uploadUrl,
      chunkedPut(
        ticket.uploadUrl,
        Array.from({ length: 320 }, () => block),
      ),
    )
    expect([answer.status, answer.broken]).toEqual([413, false])
    expect(answer.head).toContain('connection: close')
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'TOO_LARGE', reason: 'too_large' })
    expect(await stored(ticket)).toBeUndefined()
    const job = await createJob(ticket.downloadUrl)
    expect(job).toMatchObject({
      status: 422,
      body: { code: 'UPLOAD_REFUSED', reason: 'too_large', message: expect.stringContaining(String(maxFileBytes)) },
    })
  })

  test('when its announced length is over the limit, even in a form', async () => {
    for (const body of [Buffer.alloc(maxFileBytes + 1), form('b', [], Buffer.alloc(maxFileBytes + 1))]) {
      const ticket = await newTicket()
      expect((await fetch(ticket.uploadUrl, { method: 'PUT', body })).status).toBe(413)
      expect(await stored(ticket)).toBeUndefined()
    }
  })

  test('not when it has exactly the limit', async () => {
    const ticket = await newTicket()
    expect(
      (await fetch(ticket.uploadUrl, { method: 'PUT', body: form('b', [], Buffer.alloc(maxFileBytes)) })).status,
    ).toBe(200)
    expect((await stored(ticket))?.length).toBe(maxFileBytes)
  })

  test.each([
    ['has no field filedata', form('b', [], song, 'form-data; name="other"; filename="a.wav"'), 'filedata'],
    ['has no field at all', Buffer.from('--b--\r\n'), 'filedata'],
    ['breaks off', form('b', []).subarray(0, -20), 'breaks off'],
    ['has thousands of parts', form('b', Array(2000).fill('Content-Type: text/plain\r\n\r\nx')), 'more than 200 parts'],
    [
      'has only a boundary',
      Buffer.from('--b\r\nContent-Disposition: form-data; name="filedata"; filename="x"\r\n'),
      'breaks off',
    ],
  ])('when the form %s, and the ticket still takes a good one', async (_what, bytes, word) => {
    const ticket = await newTicket()
    const answer = await fetch(ticket.uploadUrl, { method: 'PUT', body: bytes })
    expect(answer.status).toBe(400)
    expect(((await answer.json()) as { message: string }).message).toContain(word)
    expect(await stored(ticket)).toBeUndefined()
    expect(await createJob(ticket.downloadUrl)).toMatchObject({ status: 422, body: { code: 'UPLOAD_REFUSED' } })
    expect((await fetch(ticket.uploadUrl, { method: 'PUT', body: song })).status).toBe(200)
    expect((await createJob(ticket.downloadUrl)).status).toBe(200)
  })

  test('when it is a part of a file, which would be stored as the complete file', async () => {
    const ticket = await newTicket()
    const headers = { 'content-range': 'bytes 0-99/20000' }
    const answer = await fetch(ticket.uploadUrl, { method: 'PUT', body: song.subarray(0, 100), headers })
    expect([answer.status, await answer.json()]).toEqual([
      400,
      expect.objectContaining({ message: expect.stringContaining('Content-Range') }),
    ])
    expect(await stored(ticket)).toBeUndefined()
    expect((await fetch(ticket.uploadUrl, { method: 'PUT', body: song })).status).toBe(200)
  })

  test('when the ticket was used, and the first file stays', async () => {
    const ticket = await newTicket()
    await fetch(ticket.uploadUrl, { method: 'PUT', body: song })
    const again = await fetch(ticket.uploadUrl, { method: 'PUT', body: 'something else' })
    expect(again.status).toBe(409)
    expect(await stored(ticket)).toBe(text(song))
  })

  test('for all but one of several that race', async () => {
    const ticket = await newTicket()
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, index) =>
        fetch(ticket.uploadUrl, { method: 'PUT', body: Buffer.alloc(20_000, index) }),
      ),
    )
    const [stored, ...refused] = answers.map((answer) => answer.status).sort((one, other) => one - other)
    expect(stored).toBe(200)
    // 429 as long as the first is under way.
    for (const status of refused) expect([409, 429]).toContain(status)
  })
})

describe('the download URL as an input', () => {
  test('is resolved without a request to ourselves', async () => {
    const { body } = await createJob(await service.uploaded(song))
    expect((await pollJob(service, String(body.id))).status).toBe('SUCCEEDED')
  })

  test("has the key of the upload, for a job that the host's own code submits", async () => {
    const inputUrl = await service.uploaded(song)
    const app = service.app.id
    const key = new URL(inputUrl).pathname.split('/storage/')[1] ?? ''
    expect(key.startsWith(`uploads/${app}/`)).toBe(true)
    expect((await service.engine.blobs.stat(key))?.bytes).toBe(song.byteLength)
    const { job } = await service.engine.submit({
      app,
      workflow: stems,
      params: { inputUrl },
      uploads: { inputUrl: key },
    })
    const { status, result } = await pollJob(service, job.id)
    expect(status).toBe('SUCCEEDED')
    const vocals = await fetch(result?.vocals ?? '')
    expect(text(Buffer.from(await vocals.arrayBuffer()))).toBe(text(song))
  })

  test('creates further jobs, even while the first one ends and afterwards', async () => {
    const inputUrl = await service.uploaded(song)
    const first = await createJob(inputUrl)
    const others: Awaited<ReturnType<typeof createJob>>[] = []
    // One after another, across the end of the first job: no job may be accepted and then lack its file.
    for (let n = 0; n < 60; n++) others.push(await createJob(inputUrl))
    for (const { status, body } of [first, ...others]) {
      expect(status).toBe(200)
      expect(await pollJob(service, String(body.id))).toMatchObject({ status: 'SUCCEEDED', error: null })
    }
    expect((await createJob(inputUrl)).status).toBe(200)
  })

  test('has a ticket that accepts no second file, even when its job has ended', async () => {
    const ticket = await newTicket()
    expect((await fetch(ticket.uploadUrl, { method: 'PUT', body: song })).status).toBe(200)
    const { body } = await createJob(ticket.downloadUrl)
    await pollJob(service, String(body.id))
    expect((await fetch(ticket.uploadUrl, { method: 'PUT', body: 'something else' })).status).toBe(409)
    expect(await stored(ticket)).toBe(text(song))
  })

  test('that was removed with its job makes no new job, which is told', async () => {
    const inputUrl = await service.uploaded(song)
    const { body } = await createJob(inputUrl)
    await pollJob(service, String(body.id))
    await service.api(`/job/${String(body.id)}`, { method: 'DELETE' })
    const removed = { reason: 'upload_missing', message: expect.stringMatching(/was removed with a job.*new ticket/) }
    expect(await createJob(inputUrl)).toMatchObject({ status: 422, body: removed })
  })

  test('that has lost its file makes no new job, but a repeated request is answered with its own', async () => {
    const inputUrl = await service.uploaded(song)
    const first = await createJob(inputUrl, 'key-of-a-lost-file')
    await pollJob(service, String(first.body.id))
    await service.engine.blobs.delete(new URL(inputUrl).pathname.replace('/v1/storage/', ''))
    expect(await createJob(inputUrl)).toMatchObject({ status: 422, body: { reason: 'upload_missing' } })
    expect(await createJob(inputUrl, 'key-of-a-lost-file')).toEqual(first)
    expect((await createJob(await service.uploaded(song), 'key-of-a-lost-file')).body.code).toBe('IDEMPOTENCY_CONFLICT')
  })

  test('that has expired makes no new job, but a repeated request is answered with its own', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const inputUrl = await service.uploaded(song)
      const first = await createJob(inputUrl, 'key-of-an-expired-link')
      // Within the 24 h for which a key is remembered, after the 24 h of the link: the key's time begins later.
      vi.setSystemTime(Number(new URL(inputUrl).searchParams.get('expires')) * 1000)
      expect(await createJob(inputUrl)).toMatchObject({
        status: 422,
        body: { code: 'UPLOAD_REFUSED', message: expect.stringContaining('expired') },
      })
      expect(await createJob(inputUrl, 'key-of-an-expired-link')).toEqual(first)
    } finally {
      vi.useRealTimers()
    }
  })

  test('is refused before the upload, with what to do', async () => {
    const { downloadUrl } = await newTicket()
    expect(await createJob(downloadUrl)).toMatchObject({
      status: 422,
      body: { code: 'UPLOAD_REFUSED', reason: 'upload_missing', message: expect.stringContaining('PUT the file') },
    })
  })

  test('is refused when it was altered', async () => {
    const inputUrl = await service.uploaded(song)
    expect(
      (await createJob(inputUrl.replace(/signature=(.)/, (_, first) => `signature=${first === 'A' ? 'B' : 'A'}`)))
        .status,
    ).toBe(422)
    expect((await createJob(inputUrl.replace(/expires=\d/, 'expires=9'))).status).toBe(422)
  })

  test('is recognized under another host name of the service', async () => {
    const inputUrl = new URL(await service.uploaded(song))
    inputUrl.hostname = 'stems.example.com'
    expect((await createJob(inputUrl.href)).status).toBe(200)
  })

  test('is refused for another application', async () => {
    const inputUrl = await service.uploaded(song)
    const { key } = await service.addApplication('Thief')
    const answer = await service.submit({ workflow: stems, params: { inputUrl } }, { key })
    expect(answer.status).toBe(422)
  })

  test('a foreign address that looks like ours is fetched like any other', async () => {
    const { body } = await createJob('https://elsewhere.invalid/v1/storage/uploads/a/b?signature=x')
    expect((await pollJob(service, String(body.id))).error).toMatchObject({ code: 'BAD_INPUT' })
  })
})
