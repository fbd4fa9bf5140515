import { notOfADevice } from '../../core/engine/job/download-name.js'
import type { JobOutput, JobRecord } from '../../core/engine/job/job.js'

/** Characters that a file name cannot have on some system or in a URL, and control characters. */
const forbidden = /[\p{Cc}\p{Cs}<>:"/\\|?*]+/gu
const mediaEnding = /\.(wav|flac|mp3|m4a|mp4|aac|ogg|opus|aiff?|wma|webm|mkv|mov|avi)$/i
const longestSong = 120
/** File systems allow names of 255 bytes; the stem and the ending follow. */
const mostBytes = 200

/** The song's name as part of a file name: without the ending of the file that was sent. */
export function songName(name: string | null): string {
  return sentName((name ?? '').replace(mediaEnding, ''))
}

/** The same with its ending. */
export function sentName(name: string | null): string {
  return onEverySystem(cutToBytes(Array.from(name ?? '').slice(0, longestSong)))
}

function onEverySystem(name: string): string {
  const allowed = name.replace(forbidden, ' ').replace(/\s+/g, ' ')
  return notOfADevice(allowed.replace(/^[\s.]+|[\s.]+$/g, '') || 'song')
}

function cutToBytes(characters: string[]): string {
  let bytes = 0
  return characters.filter((character) => (bytes += Buffer.byteLength(character)) <= mostBytes).join('')
}

/**
 * The name that is offered for a result: `Song - vocals.wav`, after the job's name; else the name that the workflow
 * gives; else the plain file name.
 */
export function downloadName(
  job: Pick<JobRecord, 'name'>,
  { fileName, downloadName: named }: Pick<JobOutput, 'fileName' | 'downloadName'>,
): string {
  return job.name === null ? onEverySystem(named ?? fileName) : `${songName(job.name)} - ${fileName}`
}
