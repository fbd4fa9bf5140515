/** What the build makes of JSX: it is smaller than calls of `jsx()`. */
export { Fragment, h } from 'preact'
