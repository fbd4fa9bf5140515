import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { type ApiKey, ClientError, type IssuedKey, type WebhookReceiver } from '../client/client.js'
import type { Client } from './page-client.js'
import { Confirm } from './confirm.js'
import { ErrorNotice } from './error-notice.js'
import { useMessages } from './messages.js'
import { linkOfKey, remember } from './session-requests.js'
import type { Session } from './session.js'
import { explain, type Explanation, whenWords } from './words.js'
import { Button } from './button.js'
import { copyText } from './copy-text.js'
import { durationWords } from './job-words.js'
import { useAnswer } from './use-answer.js'

/** Keys of the application: listed, made and ended while the service runs. */
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
                      await client.endKey(id)
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

/** Webhook receivers of the application that fail; nothing where all of them answer. */
function FailingReceivers({ client }: { client: Client }) {
  const [receivers, setReceivers] = useState<readonly WebhookReceiver[]>([])
  const { show } = useMessages()
  const refresh = async () => setReceivers(await client.failingReceivers().catch(() => []))
  useEffect(() => void refresh(), [client])
  if (receivers.length === 0) return null

  const enable = async (origin: string) => {
    try {
      await client.enableReceiver(origin)
      show({ text: 'The receiver gets messages again.' })
    } catch (error) {
      show({ text: explain(error).text })
    }
    await refresh()
  }
  return (
    <section class="stack">
      <h2>Failing webhook receivers</h2>
      <ul class="rows" aria-label="Failing webhook receivers">
        {receivers.map(({ origin, state, lastStatus, failingSince }) => (
          <li key={origin}>
            <div class="row">
              <span class="name">{origin}</span>
              <span class="quiet">
                {state} · {lastStatus === null ? 'not reached' : `answers ${lastStatus}`} · since{' '}
                {whenWords(failingSince)}
              </span>
            </div>
            {state !== 'failing' && (
              <Button class="plain" aria-label={`Enable ${origin}`} onClick={() => void enable(origin)}>
                Enable
              </Button>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

/** A new key, and a link that signs in with it: to copy, and to scan with a phone. */
function MadeKey({ made: { key }, onError }: { made: IssuedKey; onError(error: unknown): void }) {
  const { show } = useMessages()
  const [link, setLink] = useState<string>()
  const shownKey = useRef<HTMLPreElement>(null)
  const shownLink = useRef<HTMLPreElement>(null)
  const copy = (shown: RefObject<HTMLElement | null>) => void copyText(shown.current).then((text) => show({ text }))
  useEffect(() => {
    if (link !== undefined) copy(shownLink)
  }, [link])
  return (
    <section class="card made-key" aria-label="The new key">
      <p>
        <strong>Copy the key now. It will not be shown again.</strong>
      </p>
      <pre ref={shownKey} tabIndex={0}>
        {key}
      </pre>
      {link !== undefined && (
        <>
          <p class="quiet">This link signs in once, within a day. A phone can scan it.</p>
          <pre ref={shownLink} tabIndex={0}>
            {link}
          </pre>
          <QrPicture text={link} />
        </>
      )}
      <p class="buttons">
        <Button onClick={() => copy(shownKey)}>Copy key</Button>
        <Button onClick={() => (link === undefined ? void linkOfKey(key).then(setLink, onError) : copy(shownLink))}>
          Copy sign-in link
        </Button>
      </p>
    </section>
  )
}

const modulePixels = 4
/** Light margin around the code, in modules: readers need it. */
const margin = 4

function QrPicture({ text }: { text: string }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    void import('./qr-code.js').then(({ qrCode }) => {
      const code = qrCode(text)
      const context = canvas.current?.getContext('2d')
      if (!canvas.current || !context) return
      canvas.current.width = canvas.current.height = (code.length + 2 * margin) * modulePixels
      context.fillStyle = '#fff'
      context.fillRect(0, 0, canvas.current.width, canvas.current.height)
      context.fillStyle = '#000'
      code.forEach((row, y) =>
        row.forEach((isDark, x) => {
          if (isDark)
            context.fillRect((x + margin) * modulePixels, (y + margin) * modulePixels, modulePixels, modulePixels)
        }),
      )
    })
  }, [text])
  return <canvas ref={canvas} class="qr" role="img" aria-label="The sign-in link as a QR code" />
}

/** What the application has used, by workflow; nothing where it has used none, or where nobody counts. */
function UsedThisMonth({ client }: { client: Client }) {
  const totals = useAnswer(() => client.usage({ groupBy: ['workflow'] }), [client])
  if (!totals || totals.length === 0) return null
  return (
    <section class="stack">
      <h2>Used this month</h2>
      <ul class="rows" aria-label="Used this month">
        {totals.map(({ workflow, jobs, succeeded, audioSeconds, processorSeconds }) => (
          <li key={workflow}>
            <div class="row">
              <span class="name">{workflow?.replace(/^service\//, '')}</span>
              <span class="quiet">
                {jobs === 1 ? '1 job' : `${jobs.toLocaleString()} jobs`}
                {succeeded < jobs && `, ${(jobs - succeeded).toLocaleString()} failed`} ·{' '}
                {durationWords(audioSeconds * 1000)} of audio · {durationWords(processorSeconds * 1000)} of processor
                time
              </span>
            </div>
          </li>
        ))}
      </ul>
    </section>
  )
}
