import { spawn } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { createGunzip } from 'node:zlib'
import { StemworkError } from '../../engine/errors.js'
import type { LocatedFile } from './addresses/byte-source.js'
import { tarMember } from './tar.js'

/**
 * The chunks of one file in an archive on disk.
 *
 * @throws RangeError when the archive is damaged or does not have the file; StemworkError `MISSING_DEPENDENCY` without the program `tar`,
 * which unpacks bzip2
 */
export function unpack(
  path: string,
  { format, member }: NonNullable<LocatedFile['archive']>,
): AsyncIterable<Uint8Array> {
  if (format === 'tar.bz2') return outputOfTar(path, member)
  // What npm packs lies in a folder whose name does not count.
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

/** Node has no bzip2; every desktop system and nearly every image has a `tar` that finds one. */
async function* outputOfTar(path: string, member: string): AsyncGenerator<Uint8Array, void, void> {
  const tar = spawn('tar', ['-xOf', path, member], { stdio: ['ignore', 'pipe', 'ignore'] })
  const ended = new Promise<number | null>((resolve, reject) => tar.once('error', reject).once('close', resolve))
  // Without a reader of its own, a failed start would end the process.
  ended.catch(() => undefined)
  try {
    yield* tar.stdout
    const status = await ended.catch((error: unknown) => {
      throw new StemworkError(
        'MISSING_DEPENDENCY',
        'This model comes as .tar.bz2, and the programs tar and bzip2 that unpack it are missing. Install them.',
        { cause: error },
      )
    })
    if (status !== 0) throw new RangeError(`tar could not take ${member} out of the archive; is bzip2 installed?`)
  } finally {
    tar.kill()
  }
}
