import { z } from 'zod'
import { json, empty } from '../routing/answer.js'
import { authenticate, authenticateKey } from '../routing/authenticate.js'
import type { Call } from '../routing/call.js'
import { endedCookie, isOwnPage, sessionCookie, sessionOf, type SignInPage } from '../routing/page-session.js'
import { type SealedKey, signInCode } from '../auth/sealed-key.js'
import { conflict, Problem } from '../routing/problem.js'
import { definePageRoute, type Route } from '../routing/route.js'

const codeSchema = z.string().min(1).max(2000)
const signInSchema = z.strictObject({
  /** Neither key nor code: the session continues. */
  key: z.string().max(1000).optional(),
  code: codeSchema.optional(),
  remember: z.boolean().default(false),
})

/**
 * Sign-in of a person to the console: the key goes into a cookie that no script can read. Not part of the described
 * interface, whose clients send their key with each request.
 */
export const sessionRoutes: readonly Route[] = [
  definePageRoute({
    route: 'GET /session',
    operation: 'getSession',
    access: 'open',
    async handle(call) {
      const session = sessionOf(call.request, call.service, 'console')
      const isNobody = !session && call.request.headers.get('authorization') === null
      const caller = await authenticate(call.request, call.service).catch((error: unknown) => {
        // Asking whether somebody is signed in is no error, and browsers log refusals.
        if (isNobody && error instanceof Problem && error.code === 'UNAUTHORIZED') return undefined
        throw error
      })
      const isRemembered = session?.isRemembered
      return json({
        application: caller?.name ?? null,
        session: isRemembered === undefined ? null : { isRemembered },
      })
    },
  }),
  definePageRoute({
    route: 'POST /session',
    operation: 'signIn',
    access: 'open',
    body: signInSchema,
    async handle(call, { body: { key: given, code, remember: isRemembered } }) {
      requireOwnPage(call)
      const offer = code === undefined ? undefined : openCode(call, code)
      const key = given ?? offer?.key ?? sessionOf(call.request, call.service, 'console')?.key ?? ''
      const { name } = await authenticateKey(key, call.request, call.service)
      if (offer) await takeCode(call, offer)
      const cookie = sessionCookie(call.service.seal, 'console', { key, isRemembered, isSecure: isSecure(call) })
      return json({ application: name }, { headers: { 'set-cookie': cookie } })
    },
  }),
  endRoute('console', '/session', 'signOut'),
  definePageRoute({
    route: 'POST /session/code',
    operation: 'createSignInCode',
    bucket: 'create',
    body: z.strictObject({ key: z.string().max(1000) }),
    async handle(call, { body: { key } }) {
      const { id } = await authenticateKey(key, call.request, call.service)
      if (id !== call.caller.id) throw new Problem('BAD_INPUT', 'The key belongs to another application.')
      return json({ code: signInCode(call.service.seal, key) })
    },
  }),
  // Whose songs a link signs in to. Uses up nothing.
  definePageRoute({
    route: 'POST /session/offer',
    operation: 'readSignInCode',
    access: 'open',
    body: z.strictObject({ code: codeSchema }),
    async handle(call, { body: { code } }) {
      const { key } = openCode(call, code)
      const { name } = await authenticateKey(key, call.request, call.service)
      return json({ application: name })
    },
  }),
]

/** Ends the session of a page. */
export function endRoute(page: SignInPage, path: '/session' | '/operator/session', operation: string): Route {
  return definePageRoute({
    route: `DELETE ${path}`,
    operation,
    access: 'open',
    handle(call) {
      requireOwnPage(call)
      return Promise.resolve(empty(204, { 'set-cookie': endedCookie(page, isSecure(call)) }))
    },
  })
}

/** @throws Problem: another page may neither sign a person in nor out. */
export function requireOwnPage(call: Call): void {
  if (isOwnPage(call.request, call.service.options.publicUrl)) return
  const message = 'Only the pages of this service sign in and out. Programs send their key in the Authorization header.'
  throw new Problem('BAD_INPUT', message)
}

/** Whether the page came by https, even if a proxy terminated it: the browser names the page's origin. */
export function isSecure(call: Call): boolean {
  return (call.request.headers.get('origin') ?? call.baseUrl).startsWith('https:')
}

function openCode(call: Call, code: string): SealedKey {
  const offer = call.service.seal.open('sign-in link', code)
  if (offer) return offer
  throw new Problem(
    'BAD_INPUT',
    'The link that signs in is not valid, or it is older than a day. Ask for a new one, or sign in with the key.',
  )
}

async function takeCode(call: Call, { id, expiresAt }: SealedKey): Promise<void> {
  const isFirst = await call.service.engine.useOnce(`sign-in link ${id}`, Math.max(1000, expiresAt - Date.now()))
  if (isFirst) return
  throw conflict('The link was used already, and signs in only once. Ask for a new one, or sign in with the key.')
}
