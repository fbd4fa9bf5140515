import { spawn } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { createGunzip } from 'node:zlib'
import { StemworkError } from '../../engine/errors.js'
import type { LocatedFile } from './addresses/byte-source.js'
import { tarMember } from './tar.js'

/**
 * The chunks of one file in an archive on disk.
 *
 * @throws RangeError when the archive is damaged or does not contain the file; StemworkError `MISSING_DEPENDENCY` if the program
 * `tar`, which unpacks bzip2, is missing
 */
export function unpack(
  path: string,
  { format, member }: NonNullable<LocatedFile['archive']>,
): AsyncIterable<Uint8Array> {
  if (format === 'tar.bz2') return outputOfTar(path, member)
  // npm packs files into a folder whose name may vary.
  return tarMember(gunzipped(path), (found) => found === member || found.slice(found.indexOf('/') + 1) === member)
}

async function* gunzipped(path: string): AsyncGenerator<Uint8Array, void, void> {
  const source = createReadStream(path)
  const plain = createGunzip()
  source.on('error', (error) => plain.destroy(error))
  try {
    yield* source.pipe(plain)
  } catch (error) {
    throw new RangeError('the archive is damaged', { cause: error })
  } finally {
    source.destroy()
  }
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
