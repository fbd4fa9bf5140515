const maxLength = 255

/** A safe file name: no path separators or control characters, and not too long. */
export function downloadName(text: string): string {
  const safe = text.replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}/\\]/gu, '_')
  return Array.from(safe).slice(0, maxLength).join('')
}

/** Windows treats these as devices, with any ending. */
const deviceName = /^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])(?=\.|$)/i

/** A file name that Windows takes for a file. */
export function notOfADevice(name: string): string {
  return deviceName.test(name) ? `_${name}` : name
}

/** The last part of a URL's path, decoded; `undefined` if there is none. */
export function nameInUrl(url: string): string | undefined {
  const last = URL.canParse(url) ? new URL(url).pathname.split('/').at(-1) : undefined
  if (!last) return undefined
  try {
    return downloadName(decodeURIComponent(last))
  } catch {
    // The encoded name is not UTF-8.
    return downloadName(last)
  }
}
