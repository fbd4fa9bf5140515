import { spawn } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { createTarDecoder } from 'modern-tar'
import { StemworkError } from '../engine/errors.js'
import type { LocatedFile } from './addresses/byte-source.js'

/**
 * Yields the chunks of one file in an archive on disk.
 *
 * @throws RangeError when the archive is damaged or does not contain the file; StemworkError `MISSING_DEPENDENCY` if
 * the program `tar`, which unpacks bzip2, is missing
 */
export function unpack(
  path: string,
  { format, member }: NonNullable<LocatedFile['archive']>,
): AsyncIterable<Uint8Array> {
  return format === 'tar.bz2' ? outputOfTar(path, member) : gzippedMember(path, member)
}

async function* gzippedMember(path: string, member: string): AsyncGenerator<Uint8Array, void, void> {
  const source = createReadStream(path)
  const plain = createGunzip()
  source.on('error', (error) => plain.destroy(error))
  const entries = Readable.toWeb(source.pipe(plain)).pipeThrough(createTarDecoder({ strict: true }))
  try {
    // Destroying the source ends the chain. Cancelling the entries or a body would deadlock: the decoder waits to be
    // read.
    for await (const { header, body } of entries.values({ preventCancel: true })) {
      // npm packs files into a folder whose name may vary.
      const isWanted = header.name === member || header.name.slice(header.name.indexOf('/') + 1) === member
      if (isWanted && header.type === 'file') return yield* body
      await drain(body)
    }
  } catch (error) {
    throw new RangeError('the archive is damaged or ends too early', { cause: error })
  } finally {
    source.destroy()
    plain.destroy()
  }
  throw new RangeError('the archive does not contain the file')
}

async function drain(stream: ReadableStream<Uint8Array>): Promise<void> {
  await stream.pipeTo(new WritableStream())
}

/** Node has no bzip2. Desktop systems and nearly all container images have a `tar` that supports it. */
async function* outputOfTar(path: string, member: string): AsyncGenerator<Uint8Array, void, void> {
  const tar = spawn('tar', ['-xOf', path, member], { stdio: ['ignore', 'pipe', 'ignore'] })
  const ended = new Promise<number | null>((resolve, reject) => tar.once('error', reject).once('close', resolve))
  // Without a handler here, a failed start would end the process.
  ended.catch(() => undefined)
  try {
    yield* tar.stdout
    const status = await ended.catch((error: unknown) => {
      throw new StemworkError(
        'MISSING_DEPENDENCY',
        'This model is packed as .tar.bz2, and the programs tar and bzip2 that unpack it are missing. Install them.',
        { cause: error },
      )
    })
    if (status !== 0) throw new RangeError(`tar could not extract ${member} from the archive; is bzip2 installed?`)
  } finally {
    tar.kill()
  }
}
