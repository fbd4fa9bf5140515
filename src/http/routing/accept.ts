/** Whether a client wants a page rather than JSON (RFC 9110, 12.5.1). One that ranks both equally is a program. */
export function prefersHtml(accept: string | null): boolean {
  const html = quality(accept, 'text/html')
  return html > 0 && html > quality(accept, 'application/json') && html > quality(accept, 'application/problem+json')
}

/** The smallest encoding that the client accepts (RFC 9110, 12.5.3); `q=0` refuses an encoding. */
export function acceptedEncoding(accept: string | null): 'br' | 'gzip' | 'identity' {
  if (quality(accept, 'br') > 0) return 'br'
  return quality(accept, 'gzip') > 0 ? 'gzip' : 'identity'
}

function quality(accept: string | null, type: string): number {
  for (const range of (accept ?? '').toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim())
    if (name !== type) continue
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    return weight === undefined ? 1 : Number(weight.slice(2)) || 0
  }
  return 0
}
