/** What the build compiles JSX to: it is smaller than calls of `jsx()`. */
export { Fragment, h } from 'preact'
