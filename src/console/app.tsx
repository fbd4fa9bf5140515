import { render } from 'preact'
import { useCallback, useEffect, useState } from 'preact/hooks'
import { ClientError, type Client } from '../client/client.js'
import { Home } from './home.js'
import { type Choices, stemsWorkflowId } from './job-choices.js'
import { JobPage } from './job-page.js'
import { ErrorNotice } from './error-notice.js'
import { useRoute } from './route.js'
import { forgetKey, hasKey, keepKey, sessionClient } from './session.js'
import { SignIn } from './sign-in.js'
import { useUploads } from './uploads.js'
import { explain, type Explanation } from './words.js'

type Access =
  | { kind: 'checking' }
  | { kind: 'out'; problem?: Explanation }
  | { kind: 'unreachable'; problem: Explanation }
  | { kind: 'in'; client: Client; application: string }

function App() {
  const [access, setAccess] = useState<Access>({ kind: 'checking' })

  const enter = useCallback(async () => {
    setAccess({ kind: 'checking' })
    const client = sessionClient()
    try {
      // Without a key too: the host may know its users by a cookie or let everybody in.
      const { name } = await client.application()
      setAccess({ kind: 'in', client, application: name })
    } catch (error) {
      const isRefused = ClientError.is(error) && error.status === 401
      if (!isRefused) return setAccess({ kind: 'unreachable', problem: explain(error) })
      setAccess({ kind: 'out', problem: hasKey() ? explain(error) : undefined })
      forgetKey()
    }
  }, [])
  useEffect(() => void enter(), [])

  const leave = () => {
    forgetKey()
    location.hash = ''
    setAccess({ kind: 'out' })
  }

  return (
    <>
      <header class="top">
        <a class="brand" href="#/">
          <Mark />
          stemwork
        </a>
        {access.kind === 'in' && (
          <p class="who">
            <span class="quiet">{access.application}</span>
            {hasKey() && (
              <button type="button" class="plain" onClick={leave}>
                Sign out
              </button>
            )}
          </p>
        )}
      </header>
      <main>
        {access.kind === 'checking' && <p class="quiet centred">One moment …</p>}
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
            onKey={(key) => {
              keepKey(key)
              void enter()
            }}
          />
        )}
        {access.kind === 'in' && <Inside client={access.client} />}
      </main>
    </>
  )
}

/** Uploads go on, and choices stay, while the person looks at another job. */
function Inside({ client }: { client: Client }) {
  const route = useRoute()
  const uploads = useUploads(client)
  const [choices, setChoices] = useState<Choices>({ workflow: stemsWorkflowId })
  return route.name === 'job' ? (
    <JobPage key={route.id} client={client} id={route.id} />
  ) : (
    <Home client={client} uploads={uploads} choices={choices} onChoices={setChoices} />
  )
}

function Mark() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true" class="mark">
      <rect x="3" y="12" width="4" height="8" rx="2" class="voice" />
      <rect x="10" y="5" width="4" height="22" rx="2" class="voice" />
      <rect x="18" y="8" width="4" height="16" rx="2" class="music" />
      <rect x="25" y="12" width="4" height="8" rx="2" class="music" />
    </svg>
  )
}

const root = document.getElementById('app')
if (root) render(<App />, root)
