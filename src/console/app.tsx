import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ClientError } from '../client/client.js'
import type { Client } from './page-client.js'
import { Brand } from './brand.js'
import { keepFocus } from './keep-focus.js'
import { ErrorNotice } from './error-notice.js'
import { MessageBoard } from './messages.js'
import {
  currentKey,
  forgetKey,
  keepKey,
  keyOfLink,
  keyOfTabs,
  leaveTabs,
  sessionClient,
  shareWithTabs,
} from './session.js'
import { SignIn } from './sign-in.js'
import { explain, type Explanation } from './words.js'
import { Workspace } from './workspace.js'

type Access =
  | { kind: 'checking' }
  | { kind: 'out'; problem?: Explanation }
  | { kind: 'unreachable'; problem: Explanation }
  | { kind: 'in'; client: Client; application: string }

function App() {
  const [access, setAccess] = useState<Access>({ kind: 'checking' })

  const enter = async () => {
    setAccess({ kind: 'checking' })
    const linked = keyOfLink()
    const key = linked ?? currentKey() ?? (await keyOfTabs())
    // A printed link says nothing of the device; the page of the keys lets the person choose.
    if (key !== undefined && key !== currentKey()) keepKey(key, false)
    const client = sessionClient()
    try {
      // Without a key too: the host may know its users by a cookie or let everybody in.
      const { name } = await client.application()
      setAccess({ kind: 'in', client, application: name })
    } catch (error) {
      const isRefused = ClientError.is(error) && error.status === 401
      if (!isRefused) return setAccess({ kind: 'unreachable', problem: explain(error) })
      setAccess({ kind: 'out', problem: key === undefined ? undefined : explain(error) })
      forgetKey()
    }
  }
  const leave = (problem?: Explanation) => {
    forgetKey()
    location.hash = ''
    setAccess({ kind: 'out', problem })
  }
  useEffect(() => {
    shareWithTabs(() => leave())
    void enter()
    // A printed link that is opened in a tab of this page.
    const onLink = () => location.hash.startsWith('#key=') && void enter()
    addEventListener('hashchange', onLink)
    return () => removeEventListener('hashchange', onLink)
  }, [])

  if (access.kind === 'in')
    return (
      <Workspace
        client={access.client}
        application={access.application}
        hasKey={currentKey() !== undefined}
        onLeave={() => {
          leaveTabs()
          leave()
        }}
        onRefused={() => leave({ text: 'Your key no longer works. Sign in with another one.' })}
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
          <ErrorNotice problem={access.problem}>
            <button type="button" onClick={() => void enter()}>
              Try again
            </button>
          </ErrorNotice>
        )}
        {access.kind === 'out' && (
          <SignIn
            problem={access.problem}
            onKey={(key, onDevice) => {
              keepKey(key, onDevice)
              void enter()
            }}
          />
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
