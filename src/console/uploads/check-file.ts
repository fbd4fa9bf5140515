import type { Client } from '../service/page-client.js'
import { knownWorkflow } from '../service/known-workflow.js'
import { type Explanation, durationWords, sizeWords } from '../words/words.js'

/** If there is no answer within this time, the file is sent unchecked: the service checks it anyway. */
const patienceMs = 3000
const headBytes = 1024
/** Encoders add some silence to a song, which the service does not count. */
const paddingSeconds = 0.2

/** Problem with a file, as far as it can be found before sending; undefined if there is none. */
export async function checkFile(client: Client, workflow: string, file: File): Promise<Explanation | undefined> {
  if (file.size === 0) return { text: 'This file is empty.' }
  const accepted = await soon(acceptedBy(client, workflow))
  if (!accepted) return undefined
  const { maxFileBytes, maxAudioSeconds, extensions } = accepted
  if (file.size > maxFileBytes)
    return {
      text:
        `This file is ${sizeWords(file.size)}. The service takes at most ${sizeWords(maxFileBytes)}. A ` +
        'compressed copy, for example MP3, is smaller.',
    }
  if (!extensions) return undefined
  const head = new Uint8Array(await file.slice(0, headBytes).arrayBuffer())
  const type = otherType(head)
  const readable = 'Send MP3, WAV, FLAC, M4A, OGG, Opus or a video with sound.'
  if (type) return { text: `This file is ${type}, not audio. ${readable}` }
  const ending = /\.(\w+)$/.exec(file.name)?.[1]?.toLowerCase() ?? ''
  if (!extensions.includes(ending) && !isAudio(head))
    return { text: `This service cannot read ${ending ? `.${ending} files` : 'this file'}. ${readable}` }
  const seconds = await soon(durationOf(file))
  if (seconds !== undefined && seconds > maxAudioSeconds + paddingSeconds)
    return {
      text:
        `This recording lasts ${durationWords(seconds * 1000)}. ` +
        `The service takes at most ${durationWords(maxAudioSeconds * 1000)}. Send it in parts.`,
    }
  return undefined
}

/** Input that the service accepts for a workflow. `extensions` is undefined if it states no types of files. */
async function acceptedBy(client: Client, workflow: string) {
  const { limits, params } = await knownWorkflow(client, workflow)
  const input = (params.properties as { inputUrl?: { 'x-fileExtensions'?: readonly string[] } } | undefined)?.inputUrl
  return { ...limits, extensions: input?.['x-fileExtensions'] }
}

function soon<Value>(value: Promise<Value>): Promise<Value | undefined> {
  const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), patienceMs))
  return Promise.race([value.catch(() => undefined), late])
}

/** Beginnings of files, as latin-1 text, that people mistake for songs. */
const otherTypes: readonly (readonly [start: string, type: string])[] = [
  ['\x89PNG', 'an image'],
  ['\xff\xd8\xff', 'an image'],
  ['GIF8', 'an image'],
  ['%PDF', 'a PDF document'],
  ['PK\x03\x04', 'an archive or an office document'],
  ['\x1f\x8b', 'an archive'],
  ['Rar!', 'an archive'],
  ['7z\xbc\xaf', 'an archive'],
  ['MThd', 'a MIDI file, which holds notes'],
  ['MZ', 'a program'],
  ['\x7fELF', 'a program'],
]
const audioStarts = ['ID3', 'fLaC', 'OggS', 'RIFF', 'RF64', 'FORM', 'caff', 'wvpk', '\x1a\x45\xdf\xa3']

function otherType(head: Uint8Array): string | undefined {
  const text = String.fromCharCode(...head)
  const type = otherTypes.find(([start]) => text.startsWith(start))?.[1]
  if (type) return type
  if (/^#EXTM3U|^\[playlist\]/i.test(text)) return 'a playlist, which only names songs'
  // Within its first kilobyte every audio format has bytes that text does not; a shorter start proves nothing.
  return head.length > 8 && !isAudio(head) && /^[\t\n\r\x20-\x7e\x80-\xff]+$/.test(text) ? 'text' : undefined
}

function isAudio(head: Uint8Array): boolean {
  const text = String.fromCharCode(...head)
  const isMpeg = head[0] === 0xff && ((head[1] ?? 0) & 0xe0) === 0xe0
  return isMpeg || text.startsWith('ftyp', 4) || audioStarts.some((start) => text.startsWith(start))
}

/** Length in seconds as the browser's own player reads it; rejects for files that only the service can read. */
function durationOf(file: File): Promise<number> {
  const player = new Audio()
  const url = URL.createObjectURL(file)
  return new Promise<number>((resolve, reject) => {
    player.preload = 'metadata'
    player.onloadedmetadata = () => resolve(player.duration)
    player.onerror = () => reject(new Error('The browser cannot read this file.'))
    player.src = url
  }).finally(() => {
    player.removeAttribute('src')
    URL.revokeObjectURL(url)
  })
}
