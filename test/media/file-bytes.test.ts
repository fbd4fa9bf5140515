import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { fileBytes } from '../../src/core/media/decode/file-bytes.js'
import { localFile } from '../../src/core/media/decode/local-file.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()
let path: string
beforeAll(async () => {
  path = join(folder, 'file')
  await writeFile(path, Buffer.from('0123456789'))
})

test.each([
  [{}, ['0123', '4567', '89'], 1],
  [{ from: 3, to: 8 }, ['3456', '7'], 0.8],
  [{ from: 8, to: 99 }, ['89'], 1],
  [{ from: 10 }, [], 1],
])('the pieces of %j', async (range, expected, fraction) => {
  const file = fileBytes(await localFile(path))
  const pieces: string[] = []
  for await (const piece of file.pieces({ ...range, pieceBytes: 4 })) pieces.push(Buffer.from(piece).toString())
  expect(pieces).toEqual(expected)
  expect(file.readFraction()).toBe(fraction)
})

test('a piece counts as read when it is handed out, not when it is read ahead', async () => {
  const file = fileBytes(await localFile(path))
  for await (const piece of file.pieces({ pieceBytes: 4 })) {
    expect(piece.length).toBe(4)
    expect(file.readFraction()).toBe(0.4)
    break
  }
})

test('an aborted signal ends the pieces with its reason, whatever was read ahead', async () => {
  const abort = new AbortController()
  const file = fileBytes(await localFile(path), abort.signal)
  const pieces = file.pieces({ pieceBytes: 4 })
  await pieces.next()
  abort.abort(new Error('enough'))
  await expect(pieces.next()).rejects.toThrow('enough')
})
