import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ClientError } from '../client/client.js'
import { listen } from './elements/listen.js'
import type { Client } from './service/page-client.js'
import { Brand } from './elements/brand.js'
import { ErrorNotice } from './elements/error-notice.js'
import { later } from './jobs/later-parts.js'
import { MessageBoard } from './elements/messages.js'
import { codeOfLink, currentSession, keepsSongs, onOtherTab, type Session, sessionClient } from './session/session.js'
import type { Credential } from './session/session-requests.js'
import { useJobLink } from './route.js'
import { explained } from './jobs/explained.js'
import type { Explanation } from './words/first-words.js'
import { whenUsed } from './when-used.js'
import { Workspace } from './workspace.js'

const OfflinePage = whenUsed(({ OfflinePage }) => OfflinePage)
const SignIn = whenUsed(({ SignIn }) => SignIn)
const LinkSignIn = whenUsed(({ LinkSignIn }) => LinkSignIn)
const LinkedJob = whenUsed(({ LinkedJob }) => LinkedJob)

type Access =
  | { kind: 'checking' }
  | { kind: 'out'; problem?: Explanation }
  | { kind: 'unreachable'; problem: Explanation; retry(): void }
  /** A sign-in link was opened. The person must agree, because somebody else may have made the link. */
  | { kind: 'asked'; code: string; application: string; current: string | undefined }
  | { kind: 'in'; client: Client; session: Session }

function useAccess() {
  const [access, setAccess] = useState<Access>({ kind: 'checking' })

  const attempt = async (step: () => Promise<Access>) => {
    setAccess({ kind: 'checking' })
    try {
      setAccess(await step())
    } catch (error) {
      setAccess({ kind: 'unreachable', problem: await explained(error), retry: () => void attempt(step) })
    }
  }
  const enter = () =>
    attempt(async () => {
      // Tried even without a session: the host may identify its users in another way, or let everybody in.
      const session = await unlessRefused(currentSession())
      if (session) return { kind: 'in', client: sessionClient(), session }
      // A person without access may keep no songs offline.
      await forgetOfflineSongs()
      return { kind: 'out' }
    })
  const ask = (code: string) =>
    attempt(async () => {
      const session = await unlessRefused(currentSession())
      const { applicationOfCode, linkEnded } = await import('./later.js')
      const application = await unlessRefused(applicationOfCode(code))
      if (application !== undefined) return { kind: 'asked', code, application, current: session?.application }
      if (session) return { kind: 'in', client: sessionClient(), session }
      return { kind: 'out', problem: linkEnded }
    })
  const enterWith = (credential: Credential, remember: boolean) =>
    attempt(async () => {
      const { signIn } = await import('./later.js')
      const problem = await signIn(credential, remember).then(() => undefined, refusal)
      const session = problem ? undefined : await currentSession()
      return session ? { kind: 'in', client: sessionClient(), session } : { kind: 'out', problem }
    })
  const leave = (isRefused: boolean) =>
    attempt(async () => {
      await forgetOfflineSongs()
      const { keyEnded, signOut } = await import('./later.js')
      await signOut()
      location.hash = ''
      return { kind: 'out', problem: isRefused ? keyEnded : undefined }
    })
  return { access, enter, ask, enterWith, leave }
}

async function forgetOfflineSongs(): Promise<void> {
  if (keepsSongs()) await (await import('./later.js')).forgetAllOffline()
}

/** `undefined` if the key or the link is refused. */
function unlessRefused<Value>(answer: Promise<Value>): Promise<Value | undefined> {
  return answer.catch(async (error: unknown) => void (await refusal(error)))
}

/** Why a key or a link is refused. @throws other errors */
async function refusal(error: unknown): Promise<Explanation> {
  if (ClientError.is(error) && [400, 401, 409].includes(error.status ?? 0)) return explained(error)
  throw error
}

/** The song of a link needs no sign-in. */
function App() {
  const link = useJobLink()
  return link === undefined ? <KeyedApp /> : <LinkedJob key={link} link={link} />
}

function KeyedApp() {
  const { access, enter, ask, enterWith, leave } = useAccess()

  useEffect(() => {
    onOtherTab(() => void enter())
    const code = codeOfLink()
    void (code === undefined ? enter() : ask(code))
    // Handles a link that is opened in a tab of this page.
    return listen(window, {
      hashchange() {
        const opened = codeOfLink()
        if (opened !== undefined) void ask(opened)
      },
    })
  }, [])

  if (access.kind === 'in')
    return (
      <Workspace
        client={access.client}
        session={access.session}
        onLeave={() => void leave(false)}
        onRefused={() => void leave(true)}
      />
    )
  return (
    <>
      <header class="top">
        <Brand />
      </header>
      <main tabIndex={-1}>
        {access.kind === 'checking' && <p class="quiet centred">Loading …</p>}
        {access.kind === 'unreachable' && (
          <div class="stack">
            <ErrorNotice problem={access.problem} onAgain={access.retry} />
            {keepsSongs() && <OfflinePage />}
          </div>
        )}
        {access.kind === 'asked' && (
          <LinkSignIn
            application={access.application}
            current={access.current}
            onAccept={() => void enterWith({ code: access.code }, false)}
            onCancel={() => void enter()}
          />
        )}
        {access.kind === 'out' && (
          <SignIn problem={access.problem} onKey={(key, onDevice) => void enterWith({ key }, onDevice)} />
        )}
      </main>
    </>
  )
}

later.load = () => import('./later.js')

const root = document.getElementById('app')
if (root) {
  render(
    navigator.cookieEnabled ? (
      <MessageBoard>
        <App />
      </MessageBoard>
    ) : (
      <main>Allow cookies here and reload.</main>
    ),
    root,
  )
  // At the first sign of activity, loads the script for everything after the first view.
  const used = new AbortController()
  for (const sign of ['focusin', 'pointermove', 'keydown'])
    addEventListener(
      sign,
      () => {
        used.abort()
        import('./later.js').then(
          ({ keepFocus }) => keepFocus(root),
          () => undefined,
        )
      },
      { signal: used.signal },
    )
}
