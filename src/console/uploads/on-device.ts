import { type DeviceSeparation, separate, StemworkError } from '../../browser/index.js'
import { element } from '../elements/element.js'
import type { Messages } from '../elements/messages.js'
import { outputWords } from '../words/first-words.js'

/** The files of the separation lie below the page's own parts. */
const folder = new URL('console/device/', document.baseURI)

/** Songs that were separated here, or wait to be; kept while the page is open, whatever it shows. */
const songs = new Set<HTMLElement>()
let last = Promise.resolve()
let running = 0

/** Shows the songs that were separated here, or wait to be. */
export function showSongs(list: HTMLUListElement): void {
  list.ariaLabel = 'On this device'
  if (songs.size > 0) list.style.marginTop = '1.25rem'
  list.replaceChildren(...songs)
}

/** Separates songs within the page. No part of them reaches the service. */
export function separateSongs(files: Iterable<File>, list: HTMLUListElement, show: Messages['show']): void {
  for (const file of files) order(file, show)
  showSongs(list)
}

/** Queues a song, and makes its row. */
function order(file: File, show: Messages['show']): void {
  const stop = new AbortController()
  const status = element('span', { className: 'status', textContent: 'Waiting' })
  const progress = element('progress', { ariaLabel: `Separation of ${file.name}` })
  const state = element('div', { className: 'state' }, status, progress)
  const actions = element('span', { className: 'actions' })
  const name = element('span', { className: 'name', textContent: file.name, title: file.name, dir: 'auto' })
  const row = element('li', { className: 'upload' }, element('div', { className: 'row' }, name), state, actions)
  const leave = (word: string, onLeave: () => void) =>
    actions.append(
      button(word, `${word} ${file.name}`, () => {
        onLeave()
        songs.delete(row)
        row.remove()
      }),
    )

  const tell = (className: string, words: string) => {
    status.classList.add(className)
    status.textContent = words
    show({ text: `${file.name}: ${words}` })
  }
  const run = async () => {
    if (stop.signal.aborted) return
    hold(1)
    try {
      const separation = await separate(file, {
        signal: stop.signal,
        assets: { worker: new URL('worker.js', folder), model: new URL('model.onnx', folder) },
        onProgress({ progress: done }) {
          status.textContent = `Separating on this device ${Math.floor(done * 100)} %`
          progress.value = done
        },
      })
      offer(separation)
    } catch (error) {
      if (stop.signal.aborted) return
      tell('failed', StemworkError.is(error) ? error.message : 'It could not be separated on this device.')
      actions.replaceChildren()
      leave('Dismiss', () => {})
    } finally {
      progress.remove()
      hold(-1)
    }
  }
  const offer = (separation: DeviceSeparation) => {
    tell('succeeded', ['Separated. Save the files before you close the page.', ...separation.warnings].join(' '))
    const links = Object.entries(separation.stems).map(([stem, content]) => linkTo(content, outputWords(stem), file))
    state.append(element('div', { className: 'flow' }, ...links))
    actions.replaceChildren()
    leave('Remove', () => {
      for (const { href } of links) URL.revokeObjectURL(href)
      void separation.remove()
    })
  }

  leave('Stop', () => stop.abort())
  songs.add(row)
  last = last.then(run)
}

/** While songs are being separated, asks before the page is left. */
function hold(change: number): void {
  running += change
  if (running > 0) addEventListener('beforeunload', askFirst)
  else removeEventListener('beforeunload', askFirst)
}

function askFirst(event: BeforeUnloadEvent): void {
  event.preventDefault()
}

function linkTo(content: File, textContent: string, song: File): HTMLAnchorElement {
  const [href, ariaLabel] = [URL.createObjectURL(content), `${textContent} of ${song.name}`]
  return element('a', { href, download: content.name, textContent, ariaLabel, className: 'button' })
}

function button(text: string, label: string, onClick: () => void): HTMLButtonElement {
  const made = element('button', { type: 'button', className: 'plain', textContent: text, ariaLabel: label })
  made.onclick = onClick
  return made
}
