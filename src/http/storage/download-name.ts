import { extname } from 'node:path'
import type { JobOutput, JobRecord } from '../../core/engine/job/job.js'

/** Characters that a file name cannot have on some system, and control characters. */
// oxlint-disable-next-line no-control-regex
const forbidden = /[\u0000-\u001f\u007f<>:"/\\|?*]+/g
const mediaEnding = /\.(wav|flac|mp3|m4a|mp4|aac|ogg|opus|aiff?|wma|webm|mkv|mov|avi)$/i
const longestSong = 120

/** The song's name as part of a file name: without the ending of the file that was sent. */
export function songName(name: string | null): string {
  const safe = (name ?? '').replace(mediaEnding, '').replace(forbidden, ' ').replace(/\s+/g, ' ')
  const short = Array.from(safe).slice(0, longestSong).join('')
  return short.replace(/^[\s.]+|[\s.]+$/g, '') || 'song'
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
