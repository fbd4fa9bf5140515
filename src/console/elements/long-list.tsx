import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useLayoutEffect, useReducer, useRef } from 'preact/hooks'
import { listen } from './listen.js'

/** Rows are rendered this far beyond the view, for quick scrolling and for the Tab key. */
const marginPixels = 600
/** Assumed height of a row, until one was measured. */
const rowPixels = 66

/** Attributes of a row's `li`: its offset, and its position for screen readers. */
export interface RowPlace {
  'data-job': string | undefined
  style: { top: string }
  'aria-posinset': number
  'aria-setsize': number
}

/** Scroll position of the list, restored when the list is shown again. */
export class ListPosition {
  scrollTop = 0
  /** The part in view, in pixels from the top of the list. */
  view = { top: 0, bottom: innerHeight }
  /** Heights of the rows that were measured. */
  readonly heights = new Map<string, number>()
}

interface LongListProps {
  label: string
  /** Ids of the rows; rows whose job is not known yet come last and have none. */
  ids: readonly string[]
  count: number
  position: ListPosition
  /** Called after each rendering, with the rows in view. */
  onView(from: number, to: number): void
  children(index: number, place: RowPlace): ComponentChildren
}

/**
 * A list of any length. Only the rows in or near the view, and the row with the focus, are in the document. Rows may
 * have any height: they are measured, and rows in view keep their place when others turn out higher.
 */
export function LongList({ label, ids, count, position, onView, children }: LongListProps) {
  const list = useRef<HTMLUListElement>(null)
  const { rows, from, to, height } = useRows(list, ids, count, position)
  useEffect(() => onView(from, to))
  return (
    <ul class="rows songs long" ref={list} aria-label={label} style={{ height: `${height}px` }}>
      {rows.map(({ index, top }) =>
        children(index, {
          'data-job': ids[index],
          style: { top: `${top}px` },
          'aria-posinset': index + 1,
          'aria-setsize': count,
        }),
      )}
    </ul>
  )
}

type Ids = readonly string[]

function useRows(list: RefObject<HTMLUListElement | null>, ids: Ids, count: number, position: ListPosition) {
  const [, render] = useReducer((times: number) => times + 1, 0)
  const { heights } = position
  /** The row that keeps its place in the view. */
  const anchor = useRef<{ id: string | undefined; top: number }>({ id: undefined, top: 0 })
  const look = () => {
    const top = -(list.current?.getBoundingClientRect().top ?? 0)
    position.view = { top, bottom: top + innerHeight }
    render(undefined)
  }

  const tops = topsOf(ids, count, heights)
  const { top, bottom } = position.view
  const from = placeAt(tops, top)
  const to = bottom < 0 ? 0 : Math.min(count, placeAt(tops, bottom) + 1)
  const rows = indexesIn(placeAt(tops, top - marginPixels), Math.min(count, placeAt(tops, bottom + marginPixels) + 1))
  const focused = list.current?.contains(document.activeElement) ? rowOf(document.activeElement) : undefined
  const kept = focused === undefined ? -1 : ids.indexOf(focused)
  if (kept >= 0 && !rows.includes(kept)) rows.push(kept)
  rows.sort((a, b) => a - b)

  useLayoutEffect(() => {
    if (position.scrollTop > 0) scrollTo(0, position.scrollTop)
  }, [])
  useLayoutEffect(() => {
    const onMove = () => {
      position.scrollTop = scrollY
      look()
    }
    const onResize = () => {
      heights.clear()
      onMove()
    }
    onMove()
    return listen(window, { scroll: onMove, resize: onResize })
  }, [position])
  useLayoutEffect(() => {
    const isMeasured = measure(list.current, heights)
    const at = anchor.current.id === undefined ? -1 : ids.indexOf(anchor.current.id)
    const moved = at < 0 ? 0 : (tops[at] ?? 0) - anchor.current.top
    // At the top of the list, new rows should be visible.
    if (moved !== 0 && position.view.top > 0) scrollBy(0, moved)
    anchor.current = { id: ids[from], top: tops[from] ?? 0 }
    if (isMeasured || moved !== 0) look()
  })
  return { rows: rows.map((index) => ({ index, top: tops[index] ?? 0 })), from, to, height: tops[count] ?? 0 }
}

/** Top of each row, and finally the bottom of the last one. */
function topsOf(ids: Ids, count: number, heights: ReadonlyMap<string, number>): number[] {
  let sum = 0
  for (const height of heights.values()) sum += height
  const usual = heights.size > 0 ? sum / heights.size : rowPixels
  const tops = [0]
  for (let index = 0; index < count; index++) {
    const id = ids[index]
    tops.push((tops[index] ?? 0) + ((id === undefined ? undefined : heights.get(id)) ?? usual))
  }
  return tops
}

/** Index of the row at a pixel, or of the nearest row. */
function placeAt(tops: readonly number[], pixel: number): number {
  let [low, high] = [0, tops.length - 2]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if ((tops[middle] ?? 0) <= pixel) low = middle
    else high = middle - 1
  }
  return low
}

function indexesIn(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, offset) => from + offset)
}

function rowOf(element: Element | null): string | undefined {
  return element?.closest<HTMLElement>('[data-job]')?.dataset.job
}

/** @returns whether the height of any row has changed */
function measure(list: HTMLElement | null, heights: Map<string, number>): boolean {
  let isNew = false
  for (const row of list?.children ?? []) {
    const id = rowOf(row)
    const { height } = row.getBoundingClientRect()
    if (id === undefined || heights.get(id) === height) continue
    heights.set(id, height)
    isNew = true
  }
  return isNew
}
