import type { BlobStat, ByteRange } from '../../core/engine/ports/blob-store.js'
import type { RequestHeaders } from '../routing/api-request.js'

export type RangeDecision =
  | { kind: 'whole' }
  | { kind: 'part'; range: ByteRange }
  | { kind: 'unsatisfiable' }
  /** The client's copy is still good. */
  | { kind: 'unchanged' }
  /** The client expected another state of the file. */
  | { kind: 'changed' }

/** Headers on which the decision depends; `If-Range` only qualifies one of them. */
export const deciding = ['range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since']

/** Applies the conditional and range headers of RFC 9110. Several ranges are answered with the whole file. */
export function decideRange(
  headers: RequestHeaders,
  stat: Pick<BlobStat, 'bytes' | 'etag' | 'modifiedAt'>,
): RangeDecision {
  const etag = `"${stat.etag}"`
  // HTTP dates have no fractions.
  const modified = Math.floor(stat.modifiedAt / 1000) * 1000

  const ifMatch = headers.get('if-match')
  if (ifMatch !== null && !lists(ifMatch, etag)) return { kind: 'changed' }
  const unmodifiedSince = httpDate(headers.get('if-unmodified-since'))
  if (ifMatch === null && unmodifiedSince !== undefined && modified > unmodifiedSince) return { kind: 'changed' }

  const ifNoneMatch = headers.get('if-none-match')
  if (ifNoneMatch !== null) {
    if (lists(ifNoneMatch.replaceAll('W/', ''), etag)) return { kind: 'unchanged' }
  } else {
    const modifiedSince = httpDate(headers.get('if-modified-since'))
    if (modifiedSince !== undefined && modified <= modifiedSince) return { kind: 'unchanged' }
  }

  const wanted = headers.get('range')
  if (wanted === null) return { kind: 'whole' }
  const ifRange = headers.get('if-range')
  if (ifRange !== null && ifRange !== etag && httpDate(ifRange) !== modified) return { kind: 'whole' }
  return parseRange(wanted, stat.bytes)
}

function parseRange(header: string, bytes: number): RangeDecision {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header.trim())
  if (!match || (match[1] === '' && match[2] === '')) return { kind: 'whole' }
  const [first, last] = [match[1], match[2]].map((text) => (text === '' ? undefined : Number(text)))
  if (first === undefined) {
    const length = Math.min(last ?? 0, bytes)
    return length === 0 ? { kind: 'unsatisfiable' } : { kind: 'part', range: { start: bytes - length, end: bytes - 1 } }
  }
  if (last !== undefined && last < first) return { kind: 'whole' }
  if (first >= bytes) return { kind: 'unsatisfiable' }
  return { kind: 'part', range: { start: first, end: Math.min(last ?? bytes - 1, bytes - 1) } }
}

function lists(header: string, etag: string): boolean {
  return header.split(',').some((entry) => entry.trim() === '*' || entry.trim() === etag)
}

/** The forms of RFC 9110, 5.6.7, of which the last has no zone. */
const dateForms = [
  /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/,
  /^[A-Z][a-z]{5,8}, \d\d-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d GMT$/,
  /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/,
]

/** `undefined` for text that is no HTTP date: its header is ignored. */
function httpDate(text: string | null): number | undefined {
  if (text === null || !dateForms.some((form) => form.test(text))) return undefined
  const time = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return Number.isNaN(time) ? undefined : time
}
