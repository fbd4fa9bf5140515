import type { ApiRequest } from './api-request.js'
import type { KeySeal, SealedKey } from '../auth/sealed-key.js'

/** The pages that a person signs in to. */
export type SignInPage = 'console' | 'operator'

const cookies = { console: 'stemwork-console', operator: 'stemwork-operator' }
const day = 24 * 60 * 60 * 1000
/** A `session` ends with the browser, or after this time if that is never closed. */
const lifetimes = { session: 7 * day, remembered: 180 * day, operator: day / 2 }

/** The parts of the service that sessions need. */
interface SessionService {
  readonly seal: KeySeal
  readonly options: { readonly publicUrl?: string }
}

/**
 * The session of the page that sent the request. The cookie is `HttpOnly`, so that no script can read it, `SameSite`,
 * and counts only for requests of the service's own pages. It has no `Path`: a browser sends it where it was set, below
 * the base path as the browser sees it, whatever proxies add to that.
 */
export function sessionOf(
  request: ApiRequest,
  { seal, options }: SessionService,
  page: SignInPage,
): SealedKey | undefined {
  const header = request.headers.get('cookie')
  if (!header?.includes(cookies[page]) || !isOwnPage(request, options.publicUrl)) return undefined
  // Of two cookies with this name, the one with the longer path comes first; the other belongs to a service above.
  for (const cookie of header.split(/; */)) {
    const value = cookie.startsWith(`${cookies[page]}=`) ? cookie.slice(cookies[page].length + 1) : undefined
    const session = value === undefined ? undefined : seal.open(page, value)
    if (session) return session
  }
  return undefined
}

/** The `Set-Cookie` of a new session. @param isSecure whether the page came by https */
export function sessionCookie(
  seal: KeySeal,
  page: SignInPage,
  { key, isRemembered, isSecure }: { key: string; isRemembered: boolean; isSecure: boolean },
): string {
  const lasting = isRemembered ? lifetimes.remembered : lifetimes.session
  const lifeMs = page === 'operator' ? lifetimes.operator : lasting
  const value = seal.seal(page, { key, expiresAt: Date.now() + lifeMs, isRemembered })
  return cookieOf(page, value, { maxAgeSeconds: isRemembered ? lifeMs / 1000 : undefined, isSecure })
}

/** The `Set-Cookie` that ends a session. */
export function endedCookie(page: SignInPage, isSecure: boolean): string {
  return cookieOf(page, '', { maxAgeSeconds: 0, isSecure })
}

function cookieOf(
  page: SignInPage,
  value: string,
  { maxAgeSeconds, isSecure }: { maxAgeSeconds?: number; isSecure: boolean },
): string {
  const lasting = maxAgeSeconds === undefined ? [] : [`Max-Age=${maxAgeSeconds}`]
  return [`${cookies[page]}=${value}`, 'HttpOnly', 'SameSite=Strict', ...lasting, ...(isSecure ? ['Secure'] : [])].join(
    '; ',
  )
}

/**
 * Whether, according to the browser, a page of the service itself sent the request, not one of another site, port or
 * subdomain. Browsers send `Sec-Fetch-Site` over https and to localhost, and `Origin` with every request that may
 * change something.
 */
export function isOwnPage({ headers, method }: ApiRequest, publicUrl: string | undefined): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin'
  const origin = headers.get('origin')
  if (origin === null) return method === 'GET' || method === 'HEAD'
  if (!URL.canParse(origin)) return false
  const { host } = new URL(origin)
  return host === headers.get('host') || (publicUrl !== undefined && host === new URL(publicUrl).host)
}
