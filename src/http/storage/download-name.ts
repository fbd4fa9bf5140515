import { extname } from 'node:path'
import type { JobOutput, JobRecord } from '../../core/engine/job/job.js'

/**
 * Characters that a file name cannot have on some system, control characters, half characters, and what turns the
 * direction of a text so that its ending looks like another.
 */
const forbidden = /[\p{Cc}\p{Cs}\p{Bidi_Control}<>:"/\\|?*]+/gu
/** Names of devices on Windows, with any ending. */
const device = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?=\s*(\.|$))/i
const mediaEnding = /\.(wav|flac|mp3|m4a|mp4|aac|ogg|opus|aiff?|wma|webm|mkv|mov|avi)$/i
const longestSong = 120

/** The song's name as part of a file name: without the ending of the file that was sent. */
export function songName(name: string | null): string {
  const safe = (name ?? '').replace(mediaEnding, '').replace(forbidden, ' ').replace(/\s+/g, ' ')
  const short = Array.from(safe).slice(0, longestSong).join('')
  const trimmed = short.replace(/^[\s.]+|[\s.]+$/g, '')
  return trimmed.replace(device, '$1_') || 'song'
}

/**
 * The name under which a person keeps a result: `Song - vocals.wav`, after the job's name; else what the workflow says;
 * else the plain name.
 */
export function downloadName(
  job: Pick<JobRecord, 'name'>,
  { fileName, downloadName: named }: Pick<JobOutput, 'fileName' | 'downloadName'>,
): string {
  if (job.name === null) return named ?? fileName
  const ending = extname(fileName)
  return `${songName(job.name)} - ${fileName.slice(0, fileName.length - ending.length)}${ending}`
}
