const audioEnding = /\.(wav|flac|mp3|m4a|aac|ogg|opus)$/i

export function isAudio(fileName: string): boolean {
  return audioEnding.test(fileName)
}

export function stemColour(name: string): string {
  return /^(vocals|drums|bass|other)$/.test(name) ? name : 'music'
}

/** Whether the stems add up to the song that was sent: then playing all of them is playing the original. */
export function isWholeSong(names: readonly string[]): boolean {
  const has = (...wanted: string[]) => wanted.every((name) => names.includes(name)) && names.length === wanted.length
  return has('vocals', 'accompaniments') || has('vocals', 'drums', 'bass', 'other')
}
