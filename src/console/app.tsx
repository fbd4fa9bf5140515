import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ClientError } from '../client/client.js'
import type { Client } from './page-client.js'
import { Brand } from './brand.js'
import { keepFocus } from './keep-focus.js'
import { ErrorNotice } from './error-notice.js'
import { MessageBoard } from './messages.js'
import {
  applicationOfCode,
  codeOfLink,
  type Credential,
  currentSession,
  offlineMark,
  onOtherTab,
  type Session,
  sessionClient,
  signIn,
  signOut,
  tellTabs,
} from './session.js'
import { useJobLink } from './route.js'
import { explain, type Explanation } from './words.js'
import { whenUsed } from './when-used.js'
import { Workspace } from './workspace.js'

const OfflinePage = whenUsed(async () => (await import('./later.js')).OfflinePage)
const SignIn = whenUsed(async () => (await import('./later.js')).SignIn)
const LinkSignIn = whenUsed(async () => (await import('./later.js')).LinkSignIn)
const LinkedJob = whenUsed(async () => (await import('./later.js')).LinkedJob)

type Access =
  | { kind: 'checking' }
  | { kind: 'out'; problem?: Explanation }
  | { kind: 'unreachable'; problem: Explanation; retry(): void }
  /** A link was opened, by which the person has to sign in knowingly: somebody else may have made it. */
  | { kind: 'asked'; code: string; application: string; current: string | undefined }
  | { kind: 'in'; client: Client; session: Session }

function useAccess() {
  const [access, setAccess] = useState<Access>({ kind: 'checking' })

  const attempt = async (step: () => Promise<Access>) => {
    setAccess({ kind: 'checking' })
    try {
      setAccess(await step())
    } catch (error) {
      setAccess({ kind: 'unreachable', problem: explain(error), retry: () => void attempt(step) })
    }
  }
  const enter = () =>
    attempt(async () => {
      // Without a session too: the host may know its users otherwise or let everybody in.
      const session = await unlessRefused(currentSession())
      if (session) return { kind: 'in', client: sessionClient(), session }
      // Whoever is not let in any more has nothing here.
      await forgetOfflineSongs()
      return { kind: 'out' }
    })
  const ask = (code: string) =>
    attempt(async () => {
      const session = await unlessRefused(currentSession())
      const application = await unlessRefused(applicationOfCode(code))
      if (application !== undefined) return { kind: 'asked', code, application, current: session?.application }
      if (session) return { kind: 'in', client: sessionClient(), session }
      return { kind: 'out', problem: { text: 'The link no longer signs in. Ask for a new one, or enter a key.' } }
    })
  const enterWith = (credential: Credential, remember: boolean) =>
    attempt(async () => {
      const problem = await signIn(credential, remember).then(() => undefined, refusal)
      const session = problem ? undefined : await currentSession()
      return session ? { kind: 'in', client: sessionClient(), session } : { kind: 'out', problem }
    })
  const leave = (problem?: Explanation) =>
    attempt(async () => {
      await forgetOfflineSongs()
      await signOut()
      tellTabs()
      location.hash = ''
      return { kind: 'out', problem }
    })
  return { access, enter, ask, enterWith, leave }
}

async function forgetOfflineSongs(): Promise<void> {
  if (localStorage.getItem(offlineMark) !== null) await (await import('./later.js')).forgetAllOffline()
}

/** `undefined` if the key or the link is refused. */
function unlessRefused<Value>(answer: Promise<Value>): Promise<Value | undefined> {
  return answer.catch((error: unknown) => void refusal(error))
}

/** Why a key or a link is refused. @throws other errors */
function refusal(error: unknown): Explanation {
  if (ClientError.is(error) && [400, 401, 409].includes(error.status ?? 0)) return explain(error)
  throw error
}

/** Nobody needs to sign in for the song of a link. */
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
    // A link that is opened in a tab of this page.
    const onLink = () => {
      const opened = codeOfLink()
      if (opened !== undefined) void ask(opened)
    }
    addEventListener('hashchange', onLink)
    return () => removeEventListener('hashchange', onLink)
  }, [])

  if (access.kind === 'in')
    return (
      <Workspace
        client={access.client}
        session={access.session}
        onLeave={() => void leave()}
        onRefused={() => void leave({ text: 'Your key no longer works. Sign in with another one.' })}
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
            <ErrorNotice problem={access.problem}>
              <button type="button" onClick={access.retry}>
                Try again
              </button>
            </ErrorNotice>
            {localStorage.getItem(offlineMark) !== null && <OfflinePage />}
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

const root = document.getElementById('app')
if (root) {
  keepFocus(root)
  render(
    <MessageBoard>
      <App />
    </MessageBoard>,
    root,
  )
}
