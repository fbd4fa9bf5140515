import { element } from '../elements/element.js'

/** The script of `/docs`: one choice of language for all examples, and forms that send requests. */

interface TryFacts {
  method: string
  path: string
  fields: { name: string; in: string; required?: boolean }[]
  body?: unknown
  needsKey: boolean
}

const languageName = 'stemwork.docs.language'
/** Maximum characters of an answer to show: enough to read, not enough to hang the page. */
const shownCharacters = 20_000
const streamMs = 3000
const base = new URL('.', location.href.replace(/[?#].*$/, '')).href.replace(/\/$/, '')

let key = ''

function chooseLanguages(): void {
  const radios = [...document.querySelectorAll<HTMLInputElement>('.tabs-of-code input')]
  const choose = (language: string) =>
    radios.forEach((radio) => (radio.checked = radio.checked || radio.value === language))
  choose(localStorage.getItem(languageName) ?? 'curl')
  for (const radio of radios)
    radio.addEventListener('change', () => {
      localStorage.setItem(languageName, radio.value)
      choose(radio.value)
    })
}

function askForKey(): void {
  const form = document.querySelector<HTMLElement>('#key-form')
  if (!form) return
  const input = element('input', { type: 'password', value: key, autocomplete: 'off' })
  input.addEventListener('input', () => (key = input.value.trim()))
  const words = 'Your API key, for “Try it”; empty if you are signed in to the console. This page does not store it.'
  form.append(element('label', { className: 'field' }, words, input))
  form.hidden = false
}

function addForm(section: HTMLElement): void {
  const facts = JSON.parse(section.dataset.try ?? '{}') as TryFacts
  const form = element('form', { className: 'stack' })
  const inputs = facts.fields.map((field) => {
    const input = element('input', { type: 'text', required: field.required === true, name: field.name })
    form.append(element('label', { className: 'field' }, `${field.name} (${field.in})`, input))
    return { field, input }
  })
  const body =
    facts.body === undefined
      ? undefined
      : element('textarea', { rows: 10, spellcheck: false, value: JSON.stringify(facts.body, null, 2) })
  if (body) form.append(element('label', { className: 'field' }, 'Body', body))
  const answer = element('pre', { tabIndex: 0, hidden: true })
  const status = element('p', { role: 'status' })
  form.append(element('button', { type: 'submit' }, 'Send'), status, answer)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    status.textContent = 'Sending …'
    const values = inputs.map(({ field, input }) => ({ ...field, value: input.value.trim() }))
    send(facts, values, body?.value).then(
      ({ line, text }) => {
        status.textContent = line
        answer.textContent = text
        answer.hidden = text === ''
      },
      (error: unknown) => {
        status.textContent = `No answer: ${error instanceof Error ? error.message : String(error)}`
        answer.hidden = true
      },
    )
  })
  section.append(element('details', {}, element('summary', {}, 'Try it'), form))
  section.hidden = false
}

async function send(
  { method, path, needsKey }: TryFacts,
  values: { name: string; in: string; value: string }[],
  body: string | undefined,
): Promise<{ line: string; text: string }> {
  const of = (location: string) => values.filter((field) => field.in === location && field.value !== '')
  const filled = of('path').reduce(
    (known, { name, value }) => known.replace(`{${name}}`, encodeURIComponent(value)),
    path,
  )
  const query = new URLSearchParams(of('query').map(({ name, value }): [string, string] => [name, value]))
  const headers = new Headers(of('header').map(({ name, value }): [string, string] => [name, value]))
  if (needsKey && key) headers.set('authorization', key)
  if (body !== undefined) headers.set('content-type', 'application/json')
  const startedAt = performance.now()
  const address = `${base}${filled}${query.size > 0 ? `?${query.toString()}` : ''}`
  const response = await fetch(address, { method, headers, body })
  const ms = Math.round(performance.now() - startedAt)
  return { line: `${response.status} ${response.statusText} · ${ms} ms`, text: await answerText(response) }
}

/** The answer as text; for an event stream, its first seconds. */
async function answerText(response: Response): Promise<string> {
  const type = response.headers.get('content-type') ?? ''
  if (type.includes('json')) {
    const text = await response.text()
    try {
      return JSON.stringify(JSON.parse(text), null, 2).slice(0, shownCharacters)
    } catch {
      return text.slice(0, shownCharacters)
    }
  }
  if (!type.startsWith('text/')) {
    await response.body?.cancel()
    return type
  }
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  const stop = setTimeout(() => void reader?.cancel(), streamMs)
  let text = ''
  while (reader && text.length < shownCharacters) {
    const { done, value } = await reader.read()
    if (done) break
    text += decoder.decode(value, { stream: true })
  }
  clearTimeout(stop)
  await reader?.cancel()
  return text.slice(0, shownCharacters)
}

function addSearch(): void {
  const input = element('input', { type: 'search' })
  const status = element('p', { role: 'status' })
  const search = () => void import('./docs-search.js').then(({ searchIn }) => searchIn(input, status))
  input.addEventListener('focus', search, { once: true })
  document.querySelector('.contents')?.prepend(element('label', {}, 'Search', input), status)
}

askForKey()
addSearch()
for (const section of document.querySelectorAll<HTMLElement>('[data-try]')) addForm(section)
// On a phone the contents come first and would push everything else down.
const contents = document.querySelector<HTMLDetailsElement>('.contents details')
if (contents && matchMedia('(max-width: 60rem)').matches) contents.open = false
// Last: a browser that blocks cookies refuses it.
chooseLanguages()
