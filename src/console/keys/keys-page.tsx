import { useEffect, useRef, useState } from 'preact/hooks'
import { type ApiKey, ClientError, type IssuedKey } from '../../client/client.js'
import type { Client } from '../service/page-client.js'
import { Confirm } from '../elements/confirm.js'
import { FailingReceivers } from './failing-receivers.js'
import { ErrorNotice } from '../elements/error-notice.js'
import { MadeKey } from './made-key.js'
import { useMessages } from '../elements/messages.js'
import { remember } from '../session/session-requests.js'
import type { Session } from '../session/session.js'
import { UsedThisMonth } from './used-this-month.js'
import { explain, type Explanation, whenWords } from '../words/words.js'

/** Lists, creates and revokes the application's keys while the service runs. */
export function KeysPage({ client, session }: { client: Client; session: Session['session'] }) {
  const [keys, setKeys] = useState<readonly ApiKey[]>()
  const [made, setMade] = useState<IssuedKey>()
  const [problem, setProblem] = useState<Explanation>()
  const label = useRef<HTMLInputElement>(null)
  const heading = useRef<HTMLHeadingElement>(null)
  const { announce, show } = useMessages()

  const refresh = async () => {
    try {
      setKeys(await client.listKeys())
      setProblem(undefined)
    } catch (error) {
      setProblem(
        ClientError.is(error) && error.status === 404
          ? { text: 'Keys for this service are managed elsewhere. Ask its operator for one.' }
          : explain(error),
      )
    }
  }
  const attempt = async (action: () => Promise<void>) => {
    try {
      await action()
      await refresh()
    } catch (error) {
      setProblem(explain(error))
    }
  }
  useEffect(() => {
    document.title = 'API keys – stemwork'
    heading.current?.focus()
    void refresh()
  }, [client])

  return (
    <section class="stack">
      <h1 ref={heading} tabIndex={-1}>
        API keys
      </h1>
      <p class="quiet">Give each person or program a key of its own. All keys give access to the same songs.</p>
      {problem && <ErrorNotice problem={problem} />}
      {keys && (
        <form
          class="flow new-key screen"
          onSubmit={(event) => {
            event.preventDefault()
            void attempt(async () => {
              const key = await client.createKey({ label: label.current?.value.trim() || null })
              setMade(key)
              announce('Key created. Copy it now.')
              if (label.current) label.current.value = ''
            })
          }}
        >
          <label class="field">
            Name of the key
            <input ref={label} type="text" maxLength={100} placeholder="For example: studio laptop" />
          </label>
          <button type="submit" class="main">
            Create key
          </button>
        </form>
      )}
      {made && <MadeKey made={made} onError={(error) => setProblem(explain(error))} />}
      {keys && (
        <ul class="rows" aria-label="Keys">
          {keys.map(({ id, label: what, createdAt, expiresAt, isCurrent }) => (
            <li key={id}>
              <div class="row">
                <span class="name">{what ?? 'Unnamed key'}</span>
                <span class="quiet">
                  {id} · created {whenWords(createdAt).replace('Today', 'today')}
                  {expiresAt && ` · expires ${whenWords(expiresAt)}`}
                </span>
              </div>
              {isCurrent ? (
                <span class="status succeeded">In use here</span>
              ) : (
                <Confirm
                  label="Revoke"
                  name={`Revoke ${what ?? id}`}
                  buttonClass="plain"
                  title={`Revoke ${what ?? id}?`}
                  text="Pages and programs that use it are signed out at once. This cannot be undone."
                  action="Revoke key"
                  isDanger
                  onConfirm={() =>
                    attempt(async () => {
                      await client.revokeKey(id)
                      setMade((shown) => (shown?.id === id ? undefined : shown))
                      show({ text: 'Key revoked.' })
                    }).then(() => heading.current?.focus())
                  }
                />
              )}
            </li>
          ))}
        </ul>
      )}
      <FailingReceivers client={client} />
      <UsedThisMonth client={client} />
      {session && <Device session={session} onError={(error) => setProblem(explain(error))} />}
    </section>
  )
}

/** Whether this device keeps the session for later visits. */
function Device({ session, onError }: { session: { isRemembered: boolean }; onError(error: unknown): void }) {
  const [isKept, setKept] = useState(session.isRemembered)
  const keep = (isWanted: boolean) => {
    session.isRemembered = isWanted
    setKept(isWanted)
    remember(isWanted).catch(onError)
  }
  return (
    <label class="check quiet screen">
      <input type="checkbox" checked={isKept} onChange={(event) => keep(event.currentTarget.checked)} />
      Stay signed in on this device
    </label>
  )
}
