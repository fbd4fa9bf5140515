import { useEffect, useRef, useState } from 'preact/hooks'
import { Button } from '../elements/button.js'
import type { JobLink } from '../../client/client.js'
import { Confirm } from '../elements/confirm.js'
import { copyText } from '../elements/copy-text.js'
import { ErrorNotice } from '../elements/error-notice.js'
import { useMessages } from '../elements/messages.js'
import type { Client } from '../service/page-client.js'
import { explain, type Explanation, whenWords } from '../words/words.js'

/** Links by which people without a key can hear one song. Loaded when somebody opens the card. */
export function JobLinks({ client, jobId }: { client: Client; jobId: string }) {
  const [isOpen, setOpen] = useState(false)
  const [links, setLinks] = useState<readonly JobLink[]>()
  const [problem, setProblem] = useState<Explanation>()
  const attempt = async (step?: () => Promise<unknown>) => {
    try {
      await step?.()
      setLinks(await client.jobLinks(jobId))
      setProblem(undefined)
    } catch (error) {
      setProblem(explain(error))
    }
  }
  useEffect(() => {
    if (isOpen) void attempt()
  }, [client, jobId, isOpen])
  return (
    <details class="links screen" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Share this song</summary>
      <p class="quiet">
        Anyone with a link can hear this song and download its files, without a key. It opens nothing else, and expires
        after 30 days.
      </p>
      {problem && <ErrorNotice problem={problem} />}
      <Button onClick={() => void attempt(() => client.createJobLink(jobId))}>Create link</Button>
      <ul class="rows" aria-label="Links">
        {links?.map((link) => (
          <Link key={link.id} link={link} onRevoke={() => attempt(() => client.revokeJobLink(jobId, link.id))} />
        ))}
      </ul>
    </details>
  )
}

function Link({ link: { url, opens, expiresAt }, onRevoke }: { link: JobLink; onRevoke(): Promise<void> }) {
  const { show } = useMessages()
  const shown = useRef<HTMLElement>(null)
  return (
    <li>
      <div class="row">
        <code ref={shown} class="name">
          {url}
        </code>
        <span class="quiet">
          {opens === 0 ? 'Not opened yet' : `Opened ${opens === 1 ? 'once' : `${opens} times`}`} · expires{' '}
          {whenWords(expiresAt)}
        </span>
      </div>
      <span class="actions">
        <Button class="plain" onClick={() => void copyText(shown.current).then((text) => show({ text }))}>
          Copy link
        </Button>
        <Confirm
          label="Revoke"
          buttonClass="plain"
          title="Revoke this link?"
          text="The link will no longer open the song. This cannot be undone."
          action="Revoke link"
          isDanger
          onConfirm={onRevoke}
        />
      </span>
    </li>
  )
}
