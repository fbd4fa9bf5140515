import { useState } from 'preact/hooks'
import { Confirm } from '../elements/confirm.js'
import { type BulkAction, type JobFilters, service } from './service.js'

const levers: { action: BulkAction; label: string; done: string; title: string; text: string }[] = [
  {
    action: 'cancel',
    label: 'Cancel all',
    done: 'canceled',
    title: 'Cancel all jobs of this search?',
    text: 'All that wait or run end as failed, with the code CANCELED, including those not yet shown.',
  },
  {
    action: 'retry',
    label: 'Run all again',
    done: 'queued again',
    title: 'Run all failed jobs of this search again?',
    text: 'All that failed wait for their turn, including those not yet shown, as long as their inputs are kept.',
  },
  {
    action: 'delete',
    label: 'Delete all',
    done: 'deleted',
    title: 'Delete all jobs of this search?',
    text: 'In any state, with their inputs and results, including those not yet shown.',
  },
]

interface BulkLeversProps {
  filters: JobFilters
  onDone(): void
  onError(error: unknown): void
}

/** Cancels, retries or deletes all jobs that the search finds, page after page. */
export function BulkLevers({ filters, onDone, onError }: BulkLeversProps) {
  const [result, setResult] = useState<string>()
  const run = async (action: BulkAction, word: string) => {
    let done = 0
    const refused = new Map<string, number>()
    let after: string | undefined
    const tell = (end: string) => {
      const others = [...refused].map(([code, jobs]) => `, ${jobs} refused (${code})`).join('')
      setResult(`${done.toLocaleString()} ${done === 1 ? 'job' : 'jobs'} ${word}${others}${end}`)
    }
    try {
      do {
        const page = await service.actOnFound(action, { ...filters, after })
        done += page.done
        for (const { code } of page.refused) refused.set(code, (refused.get(code) ?? 0) + 1)
        after = page.isFull ? undefined : (page.next ?? undefined)
        tell(after === undefined ? (page.isFull ? '. There is no room for more.' : '.') : ' so far …')
      } while (after !== undefined)
    } catch (error) {
      onError(error)
    }
    onDone()
  }
  return (
    <div class="line">
      <p role="status" class="quiet small">
        {result}
      </p>
      <div class="levers" role="group" aria-label="All jobs of this search">
        {levers.map(({ action, label, done, title, text }) => (
          <Confirm
            key={action}
            label={label}
            title={title}
            text={text}
            isDanger={action !== 'retry'}
            onConfirm={() => run(action, done)}
          />
        ))}
      </div>
    </div>
  )
}
