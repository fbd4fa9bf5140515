import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { BlobEntry, BlobStore, ByteRange } from '../core/engine/ports/blob-store.js'
import { assertNone } from './broken-promise.js'

/** Context of a case of the blob store contract. */
export interface BlobStoreContext {
  store: BlobStore
  maxHeldBytes?: number
  close(): Promise<void>
}

export async function* sourceOf(...chunks: (Uint8Array | string)[]): AsyncGenerator<Uint8Array, void, void> {
  for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
}

/** A source that the case feeds by hand. */
export class ManualSource implements AsyncIterable<Uint8Array> {
  readonly #stream = new TransformStream<Uint8Array, Uint8Array>(undefined, undefined, { highWaterMark: 0 })
  readonly #writer = this.#stream.writable.getWriter();

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return this.#stream.readable[Symbol.asyncIterator]()
  }

  /** Resolves once the store has taken the chunk. */
  give(chunk: string): Promise<void> {
    return this.#writer.write(Buffer.from(chunk))
  }

  async end(): Promise<void> {
    // A store that gave up on the source has ended it already.
    await this.#writer.close().catch(() => {})
  }
}

export async function read(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export async function readKey(store: BlobStore, key: string, range?: ByteRange): Promise<string | undefined> {
  const found = await store.get(key, { range })
  return found && (await read(found.body)).toString('latin1')
}

export async function listed(store: BlobStore, prefix: string): Promise<BlobEntry[]> {
  const stats: BlobEntry[] = []
  for await (const stat of store.list(prefix)) stats.push(stat)
  return stats
}

export async function keysUnder(store: BlobStore, prefix: string): Promise<string[]> {
  return (await listed(store, prefix)).map((stat) => stat.key)
}

/** Asserts that nothing of an unfinished write is left, neither for readers nor for `cleanUp`. */
export async function assertNothingUnder(store: BlobStore, key: string): Promise<void> {
  assertNone(await store.get(key), 'get finds nothing of the unfinished write.')
  assertNone(await store.stat(key), 'stat finds nothing of the unfinished write.')
  assert.deepEqual(
    await keysUnder(store, key.slice(0, key.lastIndexOf('/') + 1)),
    [],
    'list shows nothing of the unfinished write.',
  )
  assert.equal((await store.cleanUp?.(Infinity)) ?? 0, 0, 'An unfinished write leaves nothing to clean up.')
}

const blockBytes = 64 * 1024

/**
 * Yields a long stream from 32 MB of reused memory, so that a store that keeps references instead of the bytes stores
 * the wrong bytes. Each block begins with its number. `onBlock` is called when a block has been taken.
 */
export async function* longSource(
  bytes: number,
  onBlock: () => void = () => {},
): AsyncGenerator<Uint8Array, void, void> {
  const chunks = Array.from({ length: 512 }, () => randomBytes(blockBytes))
  for (let block = 0; block * blockBytes < bytes; block++) {
    const chunk = chunks[block % chunks.length] ?? assert.fail('The long stream has memory for each of its blocks.')
    chunk.writeUInt32LE(block)
    yield chunk.subarray(0, Math.min(blockBytes, bytes - block * blockBytes))
    onBlock()
  }
}

/** Checks the block numbers of `longSource` in a stream of any chunking, holding one block at a time. */
export async function countLongBody(body: AsyncIterable<Uint8Array>, onBlock: () => void = () => {}): Promise<number> {
  let position = 0
  const head = Buffer.alloc(4)
  for await (const chunk of body) {
    for (let index = 0; index < chunk.byteLength;) {
      const inBlock = (position + index) % blockBytes
      if (inBlock < 4) head.set(chunk.subarray(index, index + 1), inBlock)
      if (inBlock === 3) {
        assert.equal(
          head.readUInt32LE(),
          Math.floor((position + index) / blockBytes),
          'Each block of a long blob is where it was written.',
        )
        onBlock()
      }
      index += inBlock < 4 ? 1 : blockBytes - inBlock
    }
    position += chunk.byteLength
  }
  return position
}

/** Measures the bytes of live buffers beyond those at the start. Garbage does not count. */
export class HeldBytes {
  readonly #collect: () => void
  readonly #start: number
  #blocks = 0
  peak = 0

  constructor() {
    setFlagsFromString('--expose-gc')
    this.#collect = runInNewContext('gc') as () => void
    this.#start = this.#now()
  }

  /** Call for each block; measures at every 64th (4 MiB). */
  readonly block = (): void => {
    if (this.#blocks++ % 64 === 63) this.peak = Math.max(this.peak, this.#now() - this.#start)
  }

  #now(): number {
    // The second call waits until the memory that the first has found is free.
    this.#collect()
    this.#collect()
    return process.memoryUsage().arrayBuffers
  }
}
