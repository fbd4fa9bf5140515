import { useEffect, useState } from 'preact/hooks'
import { Button } from '../elements/button.js'
import type { WebhookReceiver } from '../../client/client.js'
import type { Client } from '../service/page-client.js'
import { useMessages } from '../elements/messages.js'
import { explain, whenWords } from '../words/words.js'

/** The application's failing webhook receivers; nothing where all receivers answer. */
export function FailingReceivers({ client }: { client: Client }) {
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
