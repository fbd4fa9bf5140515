/** Whether a client wants a page rather than JSON (RFC 9110, 12.5.1). One that names both as equal is a program. */
export function prefersHtml(accept: string | null): boolean {
  const html = quality(accept, 'text/html')
  return html > 0 && html > quality(accept, 'application/json') && html > quality(accept, 'application/problem+json')
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
