"""`bentpipe serve`: the workbench with the functions that need more than a browser.

- `application`: the pages and the requests that it answers.
- `guard`: who may ask.
- `jobs`: commands that run on behalf of the page.
- `scenario_file`: the file that is edited.
"""
