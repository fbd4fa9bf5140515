import { execFile } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { badInput } from '../../engine/errors.js'
import { installedFile } from '../../engine/package-files.js'

/** Longest time for one file; an hour of FLAC takes about a minute on a slow machine. */
const timeoutMs = 5 * 60_000
/** Far more than the peaks of any file: their number is bounded. */
const maxAnswerBytes = 1024 * 1024

/**
 * Makes an `AudioPeaks` that reads each file in a short-lived child process: decoding never blocks the host, and no
 * decoder is loaded into it.
 *
 * @param directory for the copy of the file that the child reads. Default: the system's temporary folder.
 */
export function audioPeaks({ directory = tmpdir() }: { directory?: string } = {}) {
  return (file: { body: AsyncIterable<Uint8Array>; fileName: string }, signal: AbortSignal): Promise<string> =>
    measure(file, directory, signal)
}

async function measure(
  { body, fileName }: { body: AsyncIterable<Uint8Array>; fileName: string },
  directory: string,
  signal: AbortSignal,
): Promise<string> {
  const folder = await mkdtemp(join(directory, 'stemwork-peaks-'))
  try {
    const path = join(folder, `file${extname(fileName)}`)
    await pipeline(body, createWriteStream(path), { signal })
    return await runChild(path, signal)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function runChild(path: string, signal: AbortSignal): Promise<string> {
  const options = { signal, timeout: timeoutMs, maxBuffer: maxAnswerBytes, killSignal: 'SIGKILL' } as const
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [installedFile('dist/core/media/pictures/audio-peaks-child.js'), path],
      options,
      (error, stdout) => {
        if (signal.aborted) reject(signal.reason)
        else if (error)
          reject(badInput('decode_failed', 'The file holds no audio that can be read, so it cannot be drawn.'))
        else resolve(stdout)
      },
    )
  })
}
