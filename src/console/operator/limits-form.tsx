import type { RefObject } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { Button } from '../elements/button.js'
import type { LimitFacts } from '../../http/operator/answers.js'
import { ErrorNotice } from '../elements/error-notice.js'
import { errorText, type LimitChange, service } from './service.js'

const figures = [
  ['maxQueuedJobs', 'Jobs that may wait'],
  ['jobs', 'Jobs a day'],
  ['audioMinutes', 'Minutes of audio a day'],
  ['bytes', 'Bytes of input a day'],
] as const
type Figure = (typeof figures)[number][0]

/** Quota of an application, its usage today, and a form to change the quota. */
export function LimitsForm({ app, name }: { app: string; name: string }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const { limits, texts, setTexts, problem, isChecked, open, send } = useLimits(app, dialog)
  return (
    <>
      <Button onClick={open}>Quota</Button>
      <dialog ref={dialog} aria-label={`Quota of ${name}`}>
        <form
          class="stack"
          noValidate
          onSubmit={(event) => {
            event.preventDefault()
            if (limits) void send(limits)
          }}
        >
          <h2>Quota of {name}</h2>
          {limits &&
            figures.map(([figure, label]) => (
              <FigureField
                key={figure}
                figure={figure}
                label={label}
                limits={limits}
                text={texts[figure]}
                isChecked={isChecked}
                onText={(text) => setTexts({ ...texts, [figure]: text })}
              />
            ))}
          {problem !== '' && <ErrorNotice problem={{ text: problem }} />}
          <div class="buttons">
            <Button onClick={() => dialog.current?.close()}>Back</Button>
            <button type="submit" class="main" disabled={!limits}>
              Set quota
            </button>
          </div>
        </form>
      </dialog>
    </>
  )
}

function useLimits(app: string, dialog: RefObject<HTMLDialogElement | null>) {
  const [limits, setLimits] = useState<LimitFacts>()
  const [texts, setTexts] = useState<Partial<Record<Figure, string>>>({})
  const [problem, setProblem] = useState('')
  const [isChecked, setChecked] = useState(false)
  const tell = (error: unknown) => setProblem(errorText(error))
  const read = async () => {
    const found = await service.limits(app)
    setLimits(found)
    setTexts(Object.fromEntries(figures.map(([figure]) => [figure, found.own[figure]?.toString() ?? ''])))
  }
  const open = () => {
    setProblem('')
    setChecked(false)
    dialog.current?.showModal()
    read().catch(tell)
  }
  const send = async (loaded: LimitFacts) => {
    setChecked(true)
    setProblem('')
    if (figures.some(([figure]) => mistakeOf(figure, texts[figure]) !== undefined)) return
    const change: LimitChange = { revision: loaded.revision }
    for (const [figure] of figures) change[figure] = texts[figure] ? Number(texts[figure]) : null
    try {
      setLimits(await service.setLimits(app, change))
      dialog.current?.close()
    } catch (error) {
      tell(error)
      // The next attempt is based on the current limits; what was typed stays.
      setLimits(await service.limits(app).catch(() => loaded))
    }
  }
  return { limits, texts, setTexts, problem, isChecked, open, send }
}

interface FigureFieldProps {
  figure: Figure
  label: string
  limits: LimitFacts
  text: string | undefined
  isChecked: boolean
  onText(text: string): void
}

function FigureField({ figure, label, limits, text, isChecked, onText }: FigureFieldProps) {
  const mistake = isChecked ? mistakeOf(figure, text) : undefined
  const id = `limit-${figure}`
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        inputMode="decimal"
        value={text}
        placeholder={forAll(limits, figure)}
        aria-invalid={mistake !== undefined}
        aria-describedby={`${id}-note`}
        onInput={(event) => onText(event.currentTarget.value.trim())}
      />
      <p id={`${id}-note`} class={mistake === undefined ? 'quiet' : 'problem'}>
        {mistake ?? noteOf(limits, figure)}
      </p>
    </div>
  )
}

function mistakeOf(figure: Figure, text = ''): string | undefined {
  if (text === '') return undefined
  const least = figure === 'maxQueuedJobs' ? 1 : 0
  const isFine = figure === 'audioMinutes' ? /^\d+(\.\d+)?$/.test(text) : /^\d+$/.test(text) && Number(text) >= least
  if (isFine && Number(text) <= Number.MAX_SAFE_INTEGER) return undefined
  return figure === 'audioMinutes'
    ? 'Enter a number, or nothing.'
    : `Enter a whole number from ${least} on, or nothing.`
}

function forAll({ own, effective }: LimitFacts, figure: Figure): string {
  const value = own[figure] === undefined ? effective[figure] : undefined
  return value === undefined ? 'As for all' : `As for all: ${value.toLocaleString()}`
}

function noteOf({ used }: LimitFacts, figure: Figure): string {
  switch (figure) {
    case 'maxQueuedJobs':
      return 'More are refused until one begins.'
    case 'jobs':
      return `Used today: ${used.jobs.toLocaleString()}.`
    case 'audioMinutes':
      return `Used today: ${(Math.round(used.audioSeconds / 6) / 10).toLocaleString()}.`
    case 'bytes':
      return `Used today: ${used.bytes.toLocaleString()}.`
    default:
      return figure satisfies never
  }
}
