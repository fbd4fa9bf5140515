/**
 * The `Content-Disposition` of a download (RFC 6266). No file name can break out of the header or its quoted string.
 */
export function attachment(fileName: string): string {
  const name = fileName.replace(/\p{Cs}/gu, '_')
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/gu, '_')
  if (plain === name) return `attachment; filename="${plain}"`
  // RFC 8187 allows fewer characters than a URL does.
  const encoded = encodeURIComponent(name).replace(/['()*]/g, (character) => `%${character.charCodeAt(0).toString(16)}`)
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}
