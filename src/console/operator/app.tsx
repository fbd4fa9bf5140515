import { render } from 'preact'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { Button } from '../elements/button.js'
import { ClientError } from '../../client/client-error.js'
import type { Overview } from '../../http/operator/answers.js'
import { Brand } from '../elements/brand.js'
import { ErrorNotice } from '../elements/error-notice.js'
import { keepFocus } from '../elements/keep-focus.js'
import { addressOf, jobsAddress } from './address.js'
import { useHash } from '../elements/use-hash.js'
import { JobPage } from './job-page.js'
import { JobsPage } from './jobs-page.js'
import { OverviewPage } from './overview-page.js'
import { errorText, service, signIn, signOut } from './service.js'
import { SignIn } from './sign-in.js'
import { clockTime } from './times.js'

const refreshMs = 3000

function App() {
  const [out, setOut] = useState<{ problem?: string }>()
  const refused = useCallback((problem?: string) => setOut({ problem }), [])
  if (!out) return <Pages onOut={refused} />
  const enter = async (key: string) => {
    try {
      await signIn(key)
      setOut(undefined)
    } catch (error) {
      const isWrong = ClientError.is(error) && error.status === 401
      refused(isWrong ? 'This key is not the one that the service was started with.' : errorText(error))
    }
  }
  return (
    <>
      <header class="top">
        <Brand />
      </header>
      <main>
        <SignIn problem={out.problem} onKey={(key) => void enter(key)} />
      </main>
    </>
  )
}

function Pages({ onOut }: { onOut(problem?: string): void }) {
  const address = useHash(addressOf)
  const { overview, problem, fail, change, setWorker } = useOverview(onOut)
  const current = (name: string) => (address.name.startsWith(name) ? 'page' : undefined)
  return (
    <>
      <header class="top">
        <div class="who">
          <Brand />
          <span class="pill application">Operator</span>
        </div>
        <nav aria-label="Pages">
          <a href="#/" aria-current={current('overview')}>
            Overview
          </a>
          <a href={jobsAddress()} aria-current={current('job')}>
            Jobs
          </a>
        </nav>
        <div class="who">
          <span class={`chip ${problem === undefined ? 'connected' : 'reconnecting'}`}>
            {overview ? `As of ${clockTime(overview.at)}` : 'Loading …'}
          </span>
          <Button class="plain" onClick={() => void signOut().then(() => onOut(), fail)}>
            Sign out
          </Button>
        </div>
      </header>
      <main class="stack operator">
        {problem !== undefined && <ErrorNotice problem={{ text: problem }} />}
        {overview && address.name === 'overview' && (
          <OverviewPage overview={overview} onChange={change} onWorker={setWorker} />
        )}
        {overview && address.name === 'jobs' && (
          <JobsPage overview={overview} filters={address.filters} onError={fail} />
        )}
        {overview && address.name === 'job' && (
          <JobPage key={address.id} id={address.id} overview={overview} onError={fail} />
        )}
      </main>
    </>
  )
}

function useOverview(onOut: (problem?: string) => void) {
  const [overview, setOverview] = useState<Overview>()
  const [problem, setProblem] = useState<string>()
  const wasIn = useRef(false)
  const fail = useCallback(
    (error: unknown) => {
      if (ClientError.is(error) && error.status === 401)
        return onOut(wasIn.current ? 'You are no longer signed in.' : undefined)
      setProblem(errorText(error))
    },
    [onOut],
  )
  useEffect(() => {
    const read = (found: Overview) => {
      setOverview(found)
      wasIn.current = true
      setProblem(undefined)
    }
    const refresh = () => void service.overview().then(read, fail)
    refresh()
    const timer = setInterval(() => document.visibilityState === 'visible' && refresh(), refreshMs)
    return () => clearInterval(timer)
  }, [fail])
  const changing =
    <Given extends unknown[]>(send: (...given: Given) => Promise<Overview>) =>
    (...given: Given) =>
      send(...given).then(setOverview, fail)
  return { overview, problem, fail, change: changing(service.change), setWorker: changing(service.setWorker) }
}

const root = document.getElementById('app')
if (root) {
  keepFocus(root)
  render(<App />, root)
}
