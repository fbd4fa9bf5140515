import { randomUUID } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fsBlobs } from '../../../src/adapters/blobs/fs/index.js'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { readUpload } from '../../../src/core/engine/dispatch/attempt/read-upload.js'
import { temporaryFolder } from '../../temporary-folder.js'

const key = 'uploads/app/ticket'
const directory = temporaryFolder()

async function readOf(bytes: Uint8Array, maxBytes = 1000): Promise<Buffer> {
  const blobs = memoryBlobs()
  // Small pieces, so that a boundary may lie across any two of them.
  await blobs.put(
    key,
    (async function* () {
      for (let start = 0; start < bytes.byteLength; start += 7) yield bytes.subarray(start, start + 7)
    })(),
  )
  const path = join(directory, randomUUID())
  const read = await readUpload(blobs, key, path, { signal: new AbortController().signal, maxBytes })
  const file = await readFile(path)
  expect(read.bytes).toBe(file.byteLength)
  return file
}

async function formOf(fields: Record<string, Uint8Array | string>): Promise<Buffer> {
  const data = new FormData()
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'string') data.append(name, value)
    else data.append(name, new Blob([value]), 'song.mp3')
  }
  return Buffer.from(await new Response(data).arrayBuffer())
}

describe('an uploaded input', () => {
  const song = Buffer.from(Array.from({ length: 700 }, (_, n) => n % 256))

  test('is read as it is, even if it is empty, short, or begins like a form', async () => {
    for (const file of [
      song,
      Buffer.alloc(0),
      Buffer.from('-'),
      Buffer.from('--boundary\r\nno header follows'),
      Buffer.from('-'.repeat(128)),
    ]) {
      expect((await readOf(file)).equals(file)).toBe(true)
    }
  })

  test('is taken out of a form, whatever its declared type', async () => {
    expect((await readOf(await formOf({ title: 'a song', filedata: song, more: 'after' }))).equals(song)).toBe(true)
    expect((await readOf(await formOf({ filedata: Buffer.alloc(0) }))).byteLength).toBe(0)
  })

  test('is refused if its form lacks the field, is damaged or breaks off', async () => {
    const whole = await formOf({ filedata: song })
    for (const bad of [
      await formOf({}),
      await formOf({ other: song }),
      whole.subarray(0, 300),
      whole.subarray(0, whole.byteLength - 10),
    ]) {
      await expect(readOf(bad)).rejects.toMatchObject({ code: 'BAD_INPUT', reason: 'decode_failed' })
    }
  })

  test('may be exactly as large as the limit, not counting its form', async () => {
    expect((await readOf(await formOf({ filedata: song }), 700)).byteLength).toBe(700)
    for (const large of [song, await formOf({ filedata: song }), Buffer.alloc(300_000)]) {
      await expect(readOf(large, 699)).rejects.toMatchObject({ code: 'BAD_INPUT', reason: 'too_large' })
    }
  })

  test('is copied unchanged from a store that clients cannot write to', async () => {
    const blobs = fsBlobs({ directory: join(directory, 'blobs') })
    const { signal } = new AbortController()
    const path = join(directory, randomUUID())
    const form = await formOf({ filedata: song })
    for (const file of [song, Buffer.alloc(0), form]) {
      await blobs.put(key, file)
      // Overwrites the remains of an interrupted attempt.
      expect(await readUpload(blobs, key, path, { signal, maxBytes: 2000 })).toEqual({ bytes: file.byteLength })
      expect((await readFile(path)).equals(file)).toBe(true)
    }
    await expect(readUpload(blobs, key, path, { signal, maxBytes: form.byteLength })).resolves.toBeDefined()
    const limit = { signal, maxBytes: form.byteLength - 1 }
    await expect(readUpload(blobs, key, path, limit)).rejects.toMatchObject({ reason: 'too_large' })
    await blobs.delete(key)
    await expect(readUpload(blobs, key, path, limit)).rejects.toMatchObject({ reason: 'upload_missing' })
  })

  test('is read from the store where its file cannot be copied, and the store says what is wrong with it', async () => {
    const blobs = fsBlobs({ directory: join(directory, 'unreachable') })
    const localFile = async () => ({ path: join(directory, 'nowhere'), bytes: song.byteLength })
    const options = { signal: new AbortController().signal, maxBytes: 1000 }
    const path = join(directory, randomUUID())
    await blobs.put(key, song)
    expect(await readUpload({ ...blobs, localFile }, key, path, options)).toEqual({ bytes: song.byteLength })
    expect((await readFile(path)).equals(song)).toBe(true)
    const away = new StemworkError('STORE_UNAVAILABLE', 'The disk is away.', { retryable: true })
    const get = () => Promise.reject(away)
    await expect(readUpload({ ...blobs, localFile, get }, key, path, options)).rejects.toBe(away)
  })

  test('is read from the store where the copy of its file cannot be cut, and no other user may read it', async () => {
    const blobs = fsBlobs({ directory: join(directory, 'uncut') })
    await blobs.put(key, song)
    const localFile = async (of: string) => ({ path: (await blobs.localFile?.(of))?.path ?? '', bytes: Number.NaN })
    const path = join(directory, randomUUID())
    const options = { signal: new AbortController().signal, maxBytes: 1000 }
    expect(await readUpload({ ...blobs, localFile }, key, path, options)).toEqual({ bytes: song.byteLength })
    expect((await readFile(path)).equals(song)).toBe(true)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  test('that a client may have sent to the store directly is taken out of its form, within the limit', async () => {
    const files = fsBlobs({ directory: join(directory, 'signed') })
    const blobs = { ...files, signPut: async () => 'https://example.com' }
    const path = join(directory, randomUUID())
    const options = { signal: new AbortController().signal, maxBytes: 1000 }
    await blobs.put(key, await formOf({ filedata: song }))
    expect(await readUpload(blobs, key, path, options)).toEqual({ bytes: song.byteLength })
    // Fields beside the song count once they exceed what any form needs.
    await blobs.put(key, await formOf({ filedata: song, more: 'x'.repeat(300_000) }))
    await expect(readUpload(blobs, key, path, options)).rejects.toMatchObject({ reason: 'too_large' })
  })

  test('that is gone is reported as missing', async () => {
    await expect(
      readUpload(memoryBlobs(), key, join(directory, 'none'), { signal: new AbortController().signal, maxBytes: 1 }),
    ).rejects.toMatchObject({ code: 'BAD_INPUT', reason: 'upload_missing' })
  })
})
